//! TLS by rustls with the platform's roots, and further ones where the caller says so.

use std::sync::Arc;

use rustls::{ClientConfig, crypto::ring, pki_types::CertificateDer};
use rustls_platform_verifier::Verifier;

use crate::{Error, ErrorKind};

/// For HTTPS; `roots` (DER) are trusted beside the platform's.
pub(crate) fn config(roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let no_tls = |error: rustls::Error| ErrorKind::Setup(error.to_string());
    let verifier = if roots.is_empty() {
        Verifier::new(Arc::clone(&provider))
    } else {
        Verifier::new_with_extra_roots(roots, Arc::clone(&provider))
    };
    let verifier = Arc::new(verifier.map_err(no_tls)?);
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(no_tls)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(config)
}
