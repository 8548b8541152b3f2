//! One TLS connection to an address that was checked before, and to no other.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc};

use rustls::{
    ClientConfig, Error as TlsError, RootCertStore,
    client::Resumption,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{FetchBudgets, FetchSetupError};
use crate::AttemptError;

/// TLS 1.2 and 1.3 with the web's roots and the operator's; nothing is remembered between connections.
pub(super) fn tls_config(ca_files: &[PathBuf]) -> Result<Arc<ClientConfig>, FetchSetupError> {
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    for file in ca_files {
        let refuse = |reason: String| FetchSetupError::CaFile {
            file: file.clone(),
            reason,
        };
        let certificates = CertificateDer::pem_file_iter(file)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| refuse(error.to_string()))?;
        if certificates.is_empty() {
            return Err(refuse("it holds no certificate".to_owned()));
        }
        for certificate in certificates {
            roots
                .add(certificate)
                .map_err(|error| refuse(error.to_string()))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| FetchSetupError::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Connects to the first of the addresses that answers and proves to be `host`.
pub(super) async fn connect(
    host: &str,
    addresses: &[SocketAddr],
    tls: &Arc<ClientConfig>,
    budgets: &FetchBudgets,
) -> Result<TlsStream<TcpStream>, AttemptError> {
    let connected = timeout(budgets.connect, connect_any(addresses, budgets)).await;
    let stream = connected.map_err(|_| {
        AttemptError::transient(format!(
            "The image host did not accept a connection within {:?}.",
            budgets.connect
        ))
    })??;
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| AttemptError::permanent("The host name of the image URL is not valid."))?;
    let shaken = timeout(
        budgets.tls,
        TlsConnector::from(Arc::clone(tls)).connect(name, stream),
    )
    .await;
    let shaken = shaken.map_err(|_| {
        AttemptError::transient(format!(
            "The image host did not complete the TLS handshake within {:?}.",
            budgets.tls
        ))
    })?;
    shaken.map_err(|error| tls_failure(&error))
}

async fn connect_any(
    addresses: &[SocketAddr],
    budgets: &FetchBudgets,
) -> Result<TcpStream, AttemptError> {
    let mut last = String::new();
    for &address in addresses {
        match timeout(budgets.connect_one, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return pinned(stream, address),
            Ok(Err(error)) => last = format!("{address}: {error}"),
            Err(_) => last = format!("{address}: no answer"),
        }
    }
    Err(AttemptError::transient("The image host did not accept a connection.").with_detail(last))
}

/// What was checked is what was connected to, whatever stands between.
fn pinned(stream: TcpStream, checked: SocketAddr) -> Result<TcpStream, AttemptError> {
    match stream.peer_addr() {
        Ok(peer) if peer == checked => Ok(stream),
        other => Err(
            AttemptError::permanent("The image host could not be connected to safely.")
                .with_detail(format!("checked {checked}, connected to {other:?}")),
        ),
    }
}

/// A certificate or a peer that is wrong stays wrong; a connection that broke may work the next time.
fn tls_failure(error: &io::Error) -> AttemptError {
    let tls = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<TlsError>());
    let failure = match tls {
        None => AttemptError::transient(
            "The image host closed the connection during the TLS handshake.",
        ),
        Some(TlsError::InvalidCertificate(reason)) => AttemptError::permanent(format!(
            "The TLS certificate of the image host is not valid: {}.",
            certificate_fault(reason)
        )),
        Some(_) => AttemptError::permanent("The TLS of the image host is not valid."),
    };
    failure.with_detail(error)
}

fn certificate_fault(reason: &rustls::CertificateError) -> &'static str {
    use rustls::CertificateError as Fault;
    match reason {
        Fault::Expired | Fault::ExpiredContext { .. } => "it has expired",
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => "it is not valid yet",
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => {
            "it is for another host name"
        }
        Fault::UnknownIssuer => "its issuer is not trusted",
        Fault::Revoked => "it was revoked",
        _ => "it cannot be verified",
    }
}
