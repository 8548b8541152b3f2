//! The cookies of each console: of who is signed in, of the visitor who is not, for the sake of the forms, and of a browser
//! that someone signed in with before.

use axum::http::{HeaderMap, HeaderValue, header};
use upscale_core::{NoRandomness, SecretToken};

/// The cookies of a console.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Of someone who is signed in.
    Session,
    /// Of a visitor who is not signed in.
    Visitor,
    /// Of a browser, anyone who is or is not signed in there now.
    Browser,
}

/// What one console calls its cookies. Browsers tell hosts apart, not ports: two consoles on one host need names of
/// their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CookieNames {
    pub(crate) session: &'static str,
    pub(crate) visitor: &'static str,
    pub(crate) browser: &'static str,
    /// `Lax` or `Strict`.
    pub(crate) same_site: &'static str,
}

/// How cookies are named and sent. With TLS the `__Host-` prefix makes the browser refuse one that a neighbouring
/// host or a plain connection would plant.
pub(crate) struct Cookies {
    names: CookieNames,
    is_https: bool,
}

impl Cookies {
    pub(crate) fn of(names: CookieNames, is_https: bool) -> Self {
        Self { names, is_https }
    }

    fn name(&self, kind: Kind) -> String {
        let name = match kind {
            Kind::Session => self.names.session,
            Kind::Visitor => self.names.visitor,
            Kind::Browser => self.names.browser,
        };
        let prefix = if self.is_https { "__Host-" } else { "" };
        format!("{prefix}{name}")
    }

    /// The first of this name that we can have made.
    pub(crate) fn find(&self, kind: Kind, headers: &HeaderMap) -> Option<SecretToken> {
        let name = self.name(kind);
        let values = headers.get_all(header::COOKIE).iter();
        let pairs = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'));
        pairs
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(found, _)| *found == name)
            .find_map(|(_, value)| SecretToken::parse(value))
    }

    /// The value of a `Set-Cookie`; 0 seconds forget it.
    pub(crate) fn set(&self, kind: Kind, value: &str, seconds: i64) -> String {
        let secure = if self.is_https { "; Secure" } else { "" };
        let (name, same_site) = (self.name(kind), self.names.same_site);
        format!("{name}={value}; Path=/; HttpOnly; SameSite={same_site}; Max-Age={seconds}{secure}")
    }
}

/// The visitor's cookie of a request, and how the answer gives a new visitor theirs.
pub(crate) struct Planted {
    pub(crate) cookie: SecretToken,
    /// The `Set-Cookie` of one that is new.
    set: Option<String>,
}

impl Planted {
    /// The one that the browser brought, else a new one that is kept so many seconds.
    pub(crate) fn of(
        cookies: &Cookies,
        headers: &HeaderMap,
        seconds: i64,
    ) -> Result<Self, NoRandomness> {
        if let Some(cookie) = cookies.find(Kind::Visitor, headers) {
            return Ok(Self { cookie, set: None });
        }
        let cookie = SecretToken::random()?;
        let set = Some(cookies.set(Kind::Visitor, cookie.reveal(), seconds));
        Ok(Self { cookie, set })
    }

    /// Gives it to the browser, unless the page gave one of its own.
    pub(crate) fn plant(&self, headers: &mut HeaderMap) {
        if let Some(set) = &self.set
            && !headers.contains_key(header::SET_COOKIE)
        {
            append(headers, set);
        }
    }
}

/// Adds one `Set-Cookie`.
pub(crate) fn append(headers: &mut HeaderMap, cookie: &str) {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        headers.append(header::SET_COOKIE, value);
    }
}
