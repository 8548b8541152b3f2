//! TLS on a listener: the operator's certificate, read again when its files change. A certificate that is no good stops the
//! start; later the one before stays, and the log says why.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// How often the files are read again: renewals come weeks before the end, and secrets of Kubernetes are replaced by
/// turning a link, which no watch of a file sees.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// A chain of certificates has a few KiB.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why there is no certificate to serve with; the text names the file and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

/// A certificate and its key, for any number of listeners. Cheap to clone.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    certificate: Arc<Certificate>,
}

/// What is shown to clients now, and what the files held when they were last looked at.
struct Certificate {
    files: Files,
    provider: Arc<CryptoProvider>,
    current: RwLock<Arc<CertifiedKey>>,
    last_read: Mutex<Vec<u8>>,
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

impl Tls {
    /// Reads a chain of certificates, the server's own first, and its private key, both PEM.
    ///
    /// # Errors
    /// [`TlsError`] when a file cannot be read or holds something else, or the two do not belong together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let files = Files {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        };
        let provider = Arc::new(ring::default_provider());
        let (read, chain) = files.read()?;
        let certificate = Arc::new(Certificate {
            current: RwLock::new(Arc::new(files.certified(&read, chain, &provider)?)),
            last_read: Mutex::new(read),
            files,
            provider: Arc::clone(&provider),
        });
        let versions = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError(error.to_string()))?;
        let mut config = versions
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&certificate) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            certificate,
        })
    }

    /// Takes a new certificate in place of the old one whenever the files change. Never resolves.
    pub async fn watch(&self) {
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            look.tick().await;
            let certificate = Arc::clone(&self.certificate);
            // Only a panic or a stopping runtime ends it early; the next look tries again.
            let _ = tokio::task::spawn_blocking(move || certificate.look()).await;
        }
    }

    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.acceptor.accept(stream).await
    }
}

impl Certificate {
    /// What was looked at once is not judged again: the log says once what is wrong with it.
    fn look(&self) {
        let mut last_read = self
            .last_read
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (read, chain) = match self.files.read() {
            Ok(found) => found,
            Err(error) => {
                return self.keep_old(&mut last_read, error.0.clone().into_bytes(), &error);
            }
        };
        if *last_read == read {
            return;
        }
        match self.files.certified(&read, chain, &self.provider) {
            Ok(certified) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certified);
                *last_read = read;
                tracing::info!("the TLS certificate was replaced");
            }
            Err(error) => self.keep_old(&mut last_read, read, &error),
        }
    }

    fn keep_old(&self, last_read: &mut Vec<u8>, read: Vec<u8>, error: &TlsError) {
        if *last_read != read {
            tracing::error!(%error, "the TLS certificate was not replaced: the one before is still served");
            *last_read = read;
        }
    }
}

impl std::fmt::Debug for Certificate {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificate")
            .field("file", &self.files.certificate)
            .finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current))
    }
}

impl Files {
    /// All bytes of both files, and how many of them are the certificates'.
    fn read(&self) -> Result<(Vec<u8>, usize), TlsError> {
        let mut bytes = read(&self.certificate)?;
        let chain = bytes.len();
        bytes.extend(read(&self.key)?);
        Ok((bytes, chain))
    }

    fn certified(
        &self,
        bytes: &[u8],
        chain: usize,
        provider: &CryptoProvider,
    ) -> Result<CertifiedKey, TlsError> {
        let (certificates, key) = bytes.split_at(chain);
        let (certificate_file, key_file) = (self.certificate.display(), self.key.display());
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
        let chain = chain.map_err(|error| {
            TlsError(format!(
                "{certificate_file} is no PEM file of certificates: {error}"
            ))
        })?;
        if chain.is_empty() {
            return Err(TlsError(format!(
                "{certificate_file} holds no certificate (PEM, -----BEGIN CERTIFICATE-----)"
            )));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| {
            TlsError(format!(
                "{key_file} holds no private key in PEM without a passphrase: {error}"
            ))
        })?;
        CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => TlsError(format!(
                "the key in {key_file} is not the one of the first certificate in {certificate_file}"
            )),
            error => TlsError(format!(
                "{certificate_file} with {key_file} cannot be served: {error}"
            )),
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let all = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?
            .take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = all().map_err(|error| TlsError(format!("{}: {error}", path.display())))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(TlsError(format!(
            "{} has more than {FILE_BYTES_MAX} bytes and is no certificate or key",
            path.display()
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "tls/tests.rs"]
mod tests;
