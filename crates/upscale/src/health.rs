//! `upscale health`: whether the service of this machine, or of this container, can take requests. It asks `/readyz` as a
//! balancer would, and so needs no other program in an image that holds none.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use reqwest::Client;

use crate::{args::HealthArgs, data::block_on, output};

/// The service answers its probes at once, or a write to its database takes longer than anyone should wait.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Success when the process is ready; one line says so, or why not.
pub(crate) fn health(args: &HealthArgs) -> anyhow::Result<ExitCode> {
    block_on(async { ask_all(args).await })
}

/// The API's listener; where there is none, as in a worker, the metrics listener.
async fn ask_all(args: &HealthArgs) -> anyhow::Result<ExitCode> {
    // The library asks the process for its cryptography; an error says that it was chosen before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let scheme = if args.tls_cert.is_some() {
        "https"
    } else {
        "http"
    };
    let api = format!("{scheme}://{}", reached(args.listen)?);
    match (ask(&api).await, args.metrics_listen) {
        (Err(error), Some(metrics)) if error.is_connect() => {
            let metrics = format!("http://{}", reached(metrics)?);
            judge(&metrics, ask(&metrics).await)
        }
        (answer, _) => judge(&api, answer),
    }
}

async fn ask(url: &str) -> reqwest::Result<(u16, String)> {
    let client = Client::builder()
        .timeout(WAIT_MAX)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        // It goes to this machine alone, by an address that no certificate names, and carries nothing that is secret.
        .tls_danger_accept_invalid_certs(true)
        .build()?;
    let answer = client.get(format!("{url}/readyz")).send().await?;
    Ok((answer.status().as_u16(), answer.text().await?))
}

fn judge(url: &str, answer: reqwest::Result<(u16, String)>) -> anyhow::Result<ExitCode> {
    let (status, body) = answer.with_context(|| format!("no response from {url}"))?;
    if status != 200 {
        bail!("{url} is not ready ({status}): {}", body.trim());
    }
    output::line(&format!("{url} is ready"))?;
    Ok(ExitCode::SUCCESS)
}

/// Who listens on every address is reached by loopback.
fn reached(listening: SocketAddr) -> anyhow::Result<SocketAddr> {
    if listening.port() == 0 {
        bail!(
            "port 0 means another free port at every start: name the port that the service listens on"
        );
    }
    let ip = match listening.ip() {
        ip if !ip.to_canonical().is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    Ok(SocketAddr::new(ip, listening.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_everywhere_is_asked_by_loopback() {
        for (listening, expected) in [
            ("0.0.0.0:8080", Some("127.0.0.1:8080")),
            ("[::]:8080", Some("[::1]:8080")),
            ("127.0.0.1:8080", Some("127.0.0.1:8080")),
            ("192.168.1.2:80", Some("192.168.1.2:80")),
            ("127.0.0.1:0", None),
        ] {
            let found = reached(listening.parse().unwrap()).ok();
            assert_eq!(
                found,
                expected.map(|text| text.parse().unwrap()),
                "{listening}"
            );
        }
    }
}
