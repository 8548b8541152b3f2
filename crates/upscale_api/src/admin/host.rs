//! The console answers to names of this machine alone. A page of elsewhere can have its own name resolve to 127.0.0.1
//! (DNS rebinding); the browser then sends that name as Host, and nothing is shown to it.

use axum::{
    extract::Request,
    http::{HeaderMap, header},
    middleware::Next,
    response::Response,
};
use url::Host;

use crate::pages::error::ConsoleError;

/// Before any page, assets included.
pub(crate) async fn check(request: Request, next: Next) -> Result<Response, ConsoleError> {
    if !is_this_machine(request.headers()) {
        return Err(ConsoleError::WrongHost);
    }
    Ok(next.run(request).await)
}

fn is_this_machine(headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.and_then(host_of);
    match host {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Without its port; none where anything else is in it.
fn host_of(text: &str) -> Option<Host<String>> {
    let at_port = text.rfind(':').filter(|_| !text.ends_with(']'));
    let (name, port) = text.split_at(at_port.unwrap_or(text.len()));
    let is_port = port.bytes().skip(1).all(|byte| byte.is_ascii_digit());
    is_port.then(|| Host::parse(name).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_pass_and_no_others() {
        for (host, expected) in [
            ("localhost", true),
            ("LOCALHOST:8083", true),
            ("upscale.localhost:80", true),
            ("127.0.0.1:8083", true),
            ("127.9.9.9", true),
            ("[::1]:8083", true),
            ("[::1]", true),
            ("rebound.example.org:8083", false),
            ("localhost.example.org", false),
            ("127.0.0.1.example.org", false),
            ("127.0.0.1@example.org", false),
            ("example.org:127.0.0.1", false),
            ("192.168.0.1", false),
            ("0.0.0.0", false),
            ("[::]", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            assert_eq!(is_this_machine(&headers), expected, "{host}");
        }
        assert!(!is_this_machine(&HeaderMap::new()));
    }
}
