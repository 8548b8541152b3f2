//! What forms of every console have in common: where they come from, what was typed, and the token that ties each to
//! the browser it was shown to.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, header, request::Parts},
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use upscale_core::{SecretToken, hex};

use super::error::ConsoleError;
use crate::{
    permits::{Owner, Pool},
    request_body::{self, Allowance, check_not_encoded, connection_of},
};

/// The largest form holds an image's address.
const FORM_BYTES_MAX: usize = 16 * 1024;

/// Goes with every form shown to the browser whose cookie this is. It cannot be made without the cookie's secret, which
/// no other site reads; and does not reveal it.
pub(crate) fn form_token(cookie: &SecretToken) -> String {
    hex(&form_mac(cookie).finalize().into_bytes())
}

/// In the same time wherever the first wrong byte stands.
pub(crate) fn is_form_token(cookie: &SecretToken, text: &str) -> bool {
    let sent = data_encoding::HEXLOWER.decode(text.as_bytes());
    sent.is_ok_and(|sent| form_mac(cookie).verify_slice(&sent).is_ok())
}

fn form_mac(cookie: &SecretToken) -> Hmac<Sha256> {
    // 64 characters are a block of SHA-256, so this is the key itself (RFC 2104).
    let mut block = [0; 64];
    for (slot, byte) in block.iter_mut().zip(cookie.reveal().bytes()) {
        *slot = byte;
    }
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(b"upscale console form");
    mac
}

/// What was typed, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// As typed; empty when it was not sent.
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(found, _)| found == name);
        found.map_or("", |(_, value)| value)
    }

    /// With these values, as a page fills them in.
    pub(crate) fn of<const N: usize>(values: [(&str, String); N]) -> Self {
        let values = values.into_iter();
        Self(
            values
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }

    /// The same without one of them.
    pub(crate) fn without(&self, name: &str) -> Self {
        let others = self.0.iter().filter(|(found, _)| found != name);
        Self(others.cloned().collect())
    }

    /// `name=value&…`, decoded.
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(text).into_owned().collect())
    }
}

/// Every browser of today says where a form came from. Without a configured address ours is where it was sent to.
/// Answers with scheme, host and port, which are ours.
pub(crate) fn check_origin(headers: &HeaderMap, url: Option<&str>) -> Result<String, ConsoleError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let ours = match url {
        Some(url) => origin(url).to_owned(),
        None => format!("http://{}", text(header::HOST).unwrap_or_default()),
    };
    let site = text(header::HeaderName::from_static("sec-fetch-site"));
    if text(header::ORIGIN) != Some(&ours) || site.is_some_and(|site| site != "same-origin") {
        return Err(ConsoleError::Forged);
    }
    Ok(ours)
}

/// Scheme, host and port of an address.
pub(crate) fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find('/').map_or(url.len(), |at| host + at);
    &url[..end]
}

/// Whose form it is, and where it waits when it does not come at once.
pub(crate) struct Sender<'a> {
    pub(crate) pool: &'a Arc<Pool>,
    pub(crate) owner: Owner,
    /// Whether they have said who they are.
    pub(crate) is_known: bool,
}

/// The fields of a form that arrives in time, as it is, and no larger than any of ours.
pub(crate) async fn read_fields(
    parts: &Parts,
    body: Body,
    deadline: Duration,
    sender: Sender<'_>,
) -> Result<Fields, ConsoleError> {
    check_not_encoded(&parts.headers).map_err(|_| ConsoleError::BadForm)?;
    let allowance = Allowance {
        bytes_max: FORM_BYTES_MAX,
        deadline,
        pool: sender.pool,
        owner: sender.owner,
        is_known: sender.is_known,
        connection: connection_of(parts),
    };
    Ok(Fields::parse(&request_body::read(body, allowance).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ours(url: Option<&str>, lines: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.insert(*name, value.parse().unwrap());
        }
        check_origin(&headers, url).is_ok()
    }

    #[test]
    fn a_form_comes_from_our_own_origin_or_not_at_all() {
        let url = Some("https://console.example.org/x");
        for (url, lines, expected) in [
            (url, &[("origin", "https://console.example.org")][..], true),
            (url, &[("origin", "http://console.example.org")], false),
            (
                url,
                &[("origin", "https://console.example.org.evil.org")],
                false,
            ),
            (url, &[("origin", "null")], false),
            (url, &[], false),
            (
                url,
                &[
                    ("origin", "https://console.example.org"),
                    ("sec-fetch-site", "cross-site"),
                ],
                false,
            ),
            (
                None,
                &[("host", "127.0.0.1:1"), ("origin", "http://127.0.0.1:1")],
                true,
            ),
            (
                None,
                &[("host", "127.0.0.1:1"), ("origin", "http://127.0.0.1:2")],
                false,
            ),
            (None, &[("origin", "http://")], true),
        ] {
            assert_eq!(is_ours(url, lines), expected, "{url:?} {lines:?}");
        }
    }
}
