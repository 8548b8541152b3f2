//! `image_url`: what may name a source at all. Syntax only, no network; the addresses behind the name are
//! judged when the worker connects.

use url::{Host, Url};

use crate::{InvalidRequest, limits::SOURCE_URL_BYTES_MAX};

/// Names that never lead to the public internet (RFC 6761, 6762, 7686, 8375, 9476 and common private use).
const SPECIAL_USE: [&str; 14] = [
    "localhost",
    "local",
    "internal",
    "localdomain",
    "home.arpa",
    "test",
    "invalid",
    "example",
    "onion",
    "arpa",
    "alt",
    "lan",
    "corp",
    "home",
];
const SUFFIXES: [&str; 4] = [".jpg", ".jpeg", ".png", ".webp"];

/// A public HTTPS URL of a JPEG, PNG or WebP, kept byte for byte as the customer sent it.
#[derive(Clone, PartialEq, Eq)]
pub struct SourceUrl {
    text: String,
    url: Url,
}

impl SourceUrl {
    /// Applies every rule of the contract that needs no network, the suffix included.
    ///
    /// # Errors
    /// [`InvalidRequest::ImageUrl`] with the first rule that is broken.
    pub fn parse(text: &str) -> Result<Self, InvalidRequest> {
        let url = parse_target(text).map_err(InvalidRequest::ImageUrl)?;
        let path = url.path().to_ascii_lowercase();
        if !SUFFIXES.iter().any(|suffix| path.ends_with(suffix)) {
            return Err(InvalidRequest::ImageUrl(
                "the path must end in .jpg, .jpeg, .png or .webp",
            ));
        }
        Ok(Self {
            text: text.to_owned(),
            url,
        })
    }

    /// Byte for byte as sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Parsed: scheme https, a DNS name, port 443.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }
}

impl std::fmt::Debug for SourceUrl {
    /// Without path and query, which may hold the customer's secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SourceUrl({})", self.url.host_str().unwrap_or_default())
    }
}

/// Every rule but the suffix: what holds for a source also holds for each redirect it answers with.
///
/// # Errors
/// The first broken rule in words.
pub fn parse_target(text: &str) -> Result<Url, &'static str> {
    check_characters(text)?;
    // The parser forgives `https:/host` and `https:host`; other clients read these differently.
    let lower_scheme = text.get(..8).map(str::to_ascii_lowercase);
    if lower_scheme.as_deref() != Some("https://") {
        return Err("it must start with https://");
    }
    check_authority(text)?;
    let url = Url::parse(text).map_err(|_| "it is not a well-formed URL")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("user names and passwords are not allowed");
    }
    if url.port_or_known_default() != Some(443) {
        return Err("the port must be 443");
    }
    match url.host() {
        Some(Host::Domain(name)) => check_name(name)?,
        _ => return Err("the host must be a DNS name, not an IP address"),
    }
    Ok(url)
}

fn check_characters(text: &str) -> Result<(), &'static str> {
    if text.len() > SOURCE_URL_BYTES_MAX {
        return Err("it is longer than 2048 bytes");
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it must consist of visible ASCII characters");
    }
    if text.contains('\\') {
        return Err("backslashes are not allowed");
    }
    Ok(())
}

/// The authority as written, before the parser normalises it: `@` is user info even when empty, `%`
/// would be decoded into another host, and a port is 443 in exactly this spelling.
fn check_authority(text: &str) -> Result<(), &'static str> {
    let authority = text[8..].split(['/', '?', '#']).next().unwrap_or_default();
    // The parser would skip further slashes and find a host where other clients see none.
    if authority.is_empty() {
        return Err("it must have a host after https://");
    }
    if authority.contains('@') {
        return Err("user names and passwords are not allowed");
    }
    if authority.contains('%') {
        return Err("the host must not be percent-encoded");
    }
    if authority.starts_with('[') {
        return Err("the host must be a DNS name, not an IP address");
    }
    match authority.split_once(':') {
        Some((_, port)) if port != "443" => Err("the port must be 443"),
        _ => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), &'static str> {
    let labels: Vec<&str> = name.split('.').collect();
    if labels.len() < 2 {
        return Err("the host must be a public DNS name of two labels or more");
    }
    let label_is_sound = |label: &&str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.len() > 253 || !labels.iter().all(label_is_sound) {
        return Err("the host is not a valid DNS name");
    }
    // `0x7f.1` and `127.1` are addresses to some resolvers: a last label of digits names no one.
    let last = labels[labels.len() - 1];
    if last.bytes().all(|byte| byte.is_ascii_digit()) || is_hexadecimal_number(last) {
        return Err("the host must be a DNS name, not an IP address");
    }
    let is_special = |special: &str| name == special || name.ends_with(&format!(".{special}"));
    if SPECIAL_USE.into_iter().any(is_special) {
        return Err("the host is a special-use name that is not public");
    }
    Ok(())
}

fn is_hexadecimal_number(label: &str) -> bool {
    label
        .strip_prefix("0x")
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_https_urls_of_the_three_formats_are_accepted_byte_for_byte() {
        for text in [
            "https://a.example.org/a.png",
            "HTTPS://A.Example.ORG:443/x/y/A.JPEG?sig=1&b=%20#frag",
            "https://xn--bcher-kva.de/a.webp",
            "https://a.b.c.d.example.com/%C3%A9.jpg",
            "https://img_cdn.example.com/a.jpg",
        ] {
            assert_eq!(SourceUrl::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        let long = format!("https://a.example.org/{}.png", "a".repeat(2_048));
        let long_label = format!("https://{}.org/a.png", "a".repeat(64));
        let long_host = format!("https://{}example.org/a.png", "abcdefg.".repeat(32));
        for text in [
            "",
            "a.png",
            "//h.org/a.png",
            "http://a.example.org/a.png",
            "https:/a.example.org/a.png",
            "https:a.example.org/a.png",
            "ftp://a.example.org/a.png",
            "file:///a.png",
            "data:image/png,a.png",
            "https://user@a.example.org/a.png",
            "https://@a.example.org/a.png",
            "https://:@a.example.org/a.png",
            "https://good.example.org@127.0.0.1/a.png",
            "https://good.example.org\\@127.0.0.1/a.png",
            "https://127.0.0.1#@good.example.org/a.png",
            "https://a.example.org:80/a.png",
            "https://a.example.org:0/a.png",
            "https://a.example.org:65536/a.png",
            "https://a.example.org:/a.png",
            "https://a.example.org:0443/a.png",
            "https://127.0.0.1/a.png",
            "https://127.1/a.png",
            "https://2130706433/a.png",
            "https://0x7f000001/a.png",
            "https://0177.0.0.1/a.png",
            "https://0x7f.1/a.png",
            "https://1.2.3.0x4/a.png",
            "https://[::1]/a.png",
            "https://[::ffff:127.0.0.1]/a.png",
            "https://[fe80::1%25eth0]/a.png",
            "https://localhost/a.png",
            "https://a.localhost/a.png",
            "https://a.local/a.png",
            "https://printer.lan/a.png",
            "https://metadata.google.internal/a.png",
            "https://a.home.arpa/a.png",
            "https://a.test/a.png",
            "https://example/a.png",
            "https://a.example/a.png",
            "https://intranet/a.png",
            "https://a.example.org./a.png",
            "https://a..example.org/a.png",
            "https://-a.example.org/a.png",
            "https://a.example.org/a.gif",
            "https://a.example.org/a.png/",
            "https://a.example.org/?a.png",
            "https://a.example.org/#a.png",
            "https://a.example.org",
            "https://a.exa mple.org/a.png",
            " https://a.example.org/a.png",
            "https://a.example.org/a.png\n",
            "https://a.example.org/\ta.png",
            "https://ａ.example.org/a.png",
            "https://127。0。0。1/a.png",
            "https://%61.example.org/a.png",
            "https://a.example.org%2f@b/a.png",
            &long,
            &long_label,
            &long_host,
        ] {
            assert!(
                matches!(SourceUrl::parse(text), Err(InvalidRequest::ImageUrl(_))),
                "{text:?} must be refused"
            );
        }
    }

    #[test]
    fn a_url_of_exactly_2048_bytes_is_accepted_and_one_more_is_not() {
        let base = "https://a.example.org/.png".len();
        let url = |bytes: usize| format!("https://a.example.org/{}.png", "a".repeat(bytes - base));
        assert!(SourceUrl::parse(&url(2_048)).is_ok());
        assert!(SourceUrl::parse(&url(2_049)).is_err());
    }

    #[test]
    fn debug_shows_the_host_alone() {
        let url = SourceUrl::parse("https://a.example.org/secret.png?token=1").unwrap();
        assert_eq!(format!("{url:?}"), "SourceUrl(a.example.org)");
    }
}
