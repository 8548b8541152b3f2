//! The client of the service that the flags name.

use std::time::Duration;

use anyhow::Context;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use upscale_client::Client;

use crate::args::CallArgs;

/// Trusts the certificates of `--api-ca` besides.
pub(super) fn client(args: &CallArgs) -> anyhow::Result<Client> {
    let mut roots = Vec::new();
    for path in &args.api_ca {
        let read =
            CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let read = read.with_context(|| path.display().to_string())?;
        roots.extend(read.iter().map(|root| root.to_vec()));
    }
    let client = Client::trusting(&args.api, &args.api_key, roots)?;
    Ok(client.timeout(Duration::from_secs(args.timeout)))
}
