//! A root of our own for one test, and what a source may show instead of a good certificate.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};

/// What a source shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certificate {
    Good,
    Expired,
    NotYetValid,
    OtherName,
    Untrusted,
}

/// The root in PEM, and a server that shows such a certificate for `name`.
pub(crate) fn made(name: &str, certificate: Certificate) -> (String, Arc<ServerConfig>) {
    let (root_pem, issuer) = root("root of this test");
    let (_, untrusted) = root("root of no one");
    let shown = match certificate {
        Certificate::OtherName => "images.upscale-tests.net".to_owned(),
        _ => name.to_owned(),
    };
    let mut leaf = CertificateParams::new(vec![shown]).unwrap();
    match certificate {
        Certificate::Expired => leaf.not_after = date_time_ymd(2020, 1, 1),
        Certificate::NotYetValid => leaf.not_before = date_time_ymd(2100, 1, 1),
        _ => {}
    }
    let key = KeyPair::generate().unwrap();
    let signer = match certificate {
        Certificate::Untrusted => untrusted,
        _ => issuer,
    };
    let leaf = leaf.signed_by(&key, &signer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![leaf.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        );
    (root_pem, Arc::new(config.unwrap()))
}

fn root(name: &str) -> (String, Issuer<'static, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let pem = params.self_signed(&key).unwrap().pem();
    (pem, Issuer::new(params, key))
}
