//! What files are taken and what is said of the others.

use std::{fs, path::PathBuf};

use rcgen::{CertifiedKey as Made, generate_simple_self_signed};
use tempfile::TempDir;

use super::*;

struct Folder {
    folder: TempDir,
}

impl Folder {
    fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, certificate: &str, key: &str) {
        fs::write(self.path("tls.crt"), certificate).unwrap();
        fs::write(self.path("tls.key"), key).unwrap();
    }

    fn load(&self) -> Result<Tls, String> {
        Tls::load(&self.path("tls.crt"), &self.path("tls.key")).map_err(|error| error.to_string())
    }
}

/// Certificate and key, PEM.
fn make() -> (String, String) {
    let Made { cert, signing_key } =
        generate_simple_self_signed(["api.example.com".to_owned()]).unwrap();
    (cert.pem(), signing_key.serialize_pem())
}

/// The first certificate that a client is shown now.
fn shown(tls: &Tls) -> Vec<u8> {
    let current = tls.certificate.current.read().unwrap();
    current.cert[0].to_vec()
}

#[test]
fn what_is_no_certificate_or_not_its_key_is_said_in_words() {
    let folder = Folder::new();
    let (certificate, key) = make();
    let words = folder.load().err().unwrap();
    assert!(words.contains("tls.crt: No such file"), "{words}");
    let long = "-".repeat(FILE_BYTES_MAX as usize + 1);
    for (in_certificate, in_key, expected) in [
        ("", key.as_str(), "tls.crt holds no certificate"),
        (key.as_str(), key.as_str(), "tls.crt holds no certificate"),
        (certificate.as_str(), "", "tls.key holds no private key"),
        (
            certificate.as_str(),
            certificate.as_str(),
            "tls.key holds no private key",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            key.as_str(),
            "cannot be served",
        ),
        (
            "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
            key.as_str(),
            "no PEM file",
        ),
        (certificate.as_str(), make().1.as_str(), "not the one of"),
        (long.as_str(), key.as_str(), "more than 1048576 bytes"),
    ] {
        folder.write(in_certificate, in_key);
        let words = folder.load().err().unwrap();
        assert!(words.contains(expected), "{expected}: {words}");
        assert!(!words.contains("PRIVATE KEY"), "{words}");
    }
    folder.write(&certificate, &key);
    assert!(folder.load().is_ok());
}

#[test]
fn a_new_pair_is_taken_and_half_of_one_is_not() {
    let folder = Folder::new();
    let (first, second) = (make(), make());
    folder.write(&first.0, &first.1);
    let tls = folder.load().unwrap();
    let before = shown(&tls);
    tls.certificate.look();
    assert_eq!(shown(&tls), before);
    // The certificate is written before its key, a look falls between the two.
    folder.write(&second.0, &first.1);
    tls.certificate.look();
    assert_eq!(shown(&tls), before);
    fs::remove_file(folder.path("tls.key")).unwrap();
    tls.certificate.look();
    assert_eq!(shown(&tls), before);
    folder.write(&second.0, &second.1);
    tls.certificate.look();
    let after = shown(&tls);
    assert_ne!(after, before);
    // The old pair again, as after a rollback.
    folder.write(&first.0, &first.1);
    tls.certificate.look();
    assert_eq!(shown(&tls), before);
}
