//! What a browser posts. Nothing is changed by a request that does not pass here: its Origin must be ours, and it must
//! carry the token of this very visitor. Then the fields as typed, to be shown again beside what is wrong with them.

use std::time::Duration;

use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts, Request},
    http::{HeaderMap, header},
};
use http_body_util::{BodyExt, Limited};

use super::{
    error::ConsoleError,
    session::{SignedIn, Visitor},
    state::ConsoleState,
};

/// The largest form holds an image's address.
const FORM_BYTES_MAX: usize = 16 * 1024;

/// A form that one of our pages sent.
pub(crate) struct Form {
    pub(crate) visitor: Visitor,
    pub(crate) fields: Fields,
}

/// The same, by somebody who is signed in.
pub(crate) struct SignedForm {
    pub(crate) who: SignedIn,
    pub(crate) fields: Fields,
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

    /// `name=value&…`, decoded.
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(text).into_owned().collect())
    }
}

impl FromRequest<ConsoleState> for Form {
    type Rejection = ConsoleError;

    async fn from_request(request: Request, state: &ConsoleState) -> Result<Self, ConsoleError> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, state).await?;
        check_origin(&parts.headers, state.url.as_deref())?;
        let fields = read_fields(body, state.api.limits.body_timeout).await?;
        if !visitor.is_form_token(fields.get("form")) {
            return Err(ConsoleError::Forged);
        }
        Ok(Self { visitor, fields })
    }
}

impl FromRequest<ConsoleState> for SignedForm {
    type Rejection = ConsoleError;

    async fn from_request(request: Request, state: &ConsoleState) -> Result<Self, ConsoleError> {
        let (mut parts, body) = request.into_parts();
        let who = SignedIn::from_request_parts(&mut parts, state).await?;
        let form = Form::from_request(Request::from_parts(parts, body), state).await?;
        Ok(Self {
            who,
            fields: form.fields,
        })
    }
}

/// Every browser of today says where a form came from. Without a configured address ours is where it was sent to.
fn check_origin(headers: &HeaderMap, url: Option<&str>) -> Result<(), ConsoleError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let ours = match url {
        Some(url) => origin(url).to_owned(),
        None => format!("http://{}", text(header::HOST).unwrap_or_default()),
    };
    let site = text(header::HeaderName::from_static("sec-fetch-site"));
    if text(header::ORIGIN) != Some(&ours) || site.is_some_and(|site| site != "same-origin") {
        return Err(ConsoleError::Forged);
    }
    Ok(())
}

/// Scheme, host and port of an address.
pub(crate) fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find('/').map_or(url.len(), |at| host + at);
    &url[..end]
}

async fn read_fields(body: Body, timeout: Duration) -> Result<Fields, ConsoleError> {
    let limited = Limited::new(body, FORM_BYTES_MAX);
    let collected = tokio::time::timeout(timeout, limited.collect()).await;
    match collected {
        Ok(Ok(body)) => Ok(Fields::parse(&body.to_bytes())),
        _ => Err(ConsoleError::BadForm),
    }
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
