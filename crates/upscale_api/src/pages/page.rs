//! What every page has: the layout around it and the files that it names, and headers that let it load nothing from elsewhere, be framed by
//! no one and leave nothing behind. What stands in its navigation each console says itself.

use askama::Template;
use axum::{
    extract::Path,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Response},
};

use super::{
    assets::{COMPARE_URL, ICON_URL, SCRIPT_URL, STYLE_URL, find_asset},
    error::ConsoleError,
};

/// What the layout shows around a page.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Names the page, in the window's title and in the first heading.
    pub(crate) title: String,
    /// What the console calls itself, beside its sign.
    pub(crate) console: &'static str,
    /// Who is signed in; none shows no navigation.
    pub(crate) who: Option<String>,
    /// What the button beside says.
    pub(crate) leave: &'static str,
    /// For every form of the page.
    pub(crate) form_token: String,
    /// The links of the navigation.
    pub(crate) links: &'static [Link],
    /// Address of the link that this page belongs to.
    pub(crate) here: &'static str,
    /// One sentence about what was just done.
    pub(crate) notice: Option<&'static str>,
    /// Whether who is signed in has yet to prove their address.
    pub(crate) must_verify: bool,
    /// Address of the stylesheet.
    pub(crate) style: &'static str,
    /// Address of the script.
    pub(crate) script: &'static str,
    /// Address of the script of comparisons.
    pub(crate) compare: &'static str,
    /// Address of the icon.
    pub(crate) icon: &'static str,
}

/// One link of the navigation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    /// Where it leads.
    pub(crate) url: &'static str,
    /// What it says.
    pub(crate) name: &'static str,
    /// Its drawing among `pages/icons.html`.
    pub(crate) icon: &'static str,
}

impl Layout {
    /// Of a page below one of the navigation's links, in its console's console.
    pub(crate) fn of_console(
        console: &'static str,
        links: &'static [Link],
        here: &'static str,
        title: &str,
    ) -> Self {
        Self {
            title: title.to_owned(),
            console,
            who: None,
            leave: "Sign out",
            form_token: String::new(),
            links,
            here,
            notice: None,
            must_verify: false,
            style: &STYLE_URL,
            script: &SCRIPT_URL,
            compare: &COMPARE_URL,
            icon: &ICON_URL,
        }
    }
}

/// Renders a page.
pub(crate) fn show(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(html) => (status, Html(html)).into_response(),
        Err(error) => ConsoleError::Broken(error.to_string()).into_response(),
    }
}

/// `GET /assets/{file}`: what the layout names.
pub(crate) async fn asset(Path(file): Path<String>) -> Result<Response, ConsoleError> {
    let asset = find_asset(&file).ok_or(ConsoleError::NotFound)?;
    let headers = [
        (header::CONTENT_TYPE, asset.kind),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    Ok((headers, asset.text).into_response())
}

/// Where a page may load from beside its own origin; of each source only the origin counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    /// Origins of pictures.
    pub(crate) pictures: Vec<String>,
    /// Origins that a form of the page may lead to, redirects included.
    pub(crate) forms: Vec<String>,
}

impl Sources {
    /// The policy's text. Everything that is not named is forbidden.
    pub(crate) fn policy(&self) -> String {
        let list = |origins: &[String]| {
            origins
                .iter()
                .map(|origin| format!(" {origin}"))
                .collect::<String>()
        };
        format!(
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'{}; \
             form-action 'self'{}; frame-ancestors 'none'; base-uri 'none'",
            list(&self.pictures),
            list(&self.forms)
        )
    }

    /// Lets this answer load from there.
    pub(crate) fn allow(&self, response: &mut Response) {
        insert(
            response.headers_mut(),
            header::CONTENT_SECURITY_POLICY,
            &self.policy(),
        );
    }
}

/// What an answer has not set itself.
pub(crate) fn add_security_headers(headers: &mut HeaderMap, is_https: bool) {
    for (name, value) in [
        (
            header::CONTENT_SECURITY_POLICY,
            Sources::default().policy().as_str(),
        ),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Not no-referrer: with that a form's Origin is "null", and who posts could not be told.
        (header::REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=(), payment=()",
        ),
    ] {
        if !headers.contains_key(&name) {
            insert(headers, name, value);
        }
    }
    if is_https {
        insert(
            headers,
            header::STRICT_TRANSPORT_SECURITY,
            "max-age=31536000",
        );
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
