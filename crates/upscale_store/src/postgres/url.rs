//! The database's address as operators write it: a libpq URL or a list of `name=value`. What tokio-postgres
//! does not know of it (how far certificates are checked) is taken out here.

use std::path::PathBuf;

use tokio_postgres::config::SslMode;

use super::tls::Check;
use crate::StoreError;

/// A parsed address.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) config: tokio_postgres::Config,
    pub(super) check: Check,
}

/// Parses `postgres://user:password@host:port/database?sslmode=…&sslrootcert=…`. The modes are libpq's:
/// `disable`, `prefer` (the default), `require`, `verify-ca`, `verify-full`; `sslrootcert` makes `require`
/// mean `verify-ca`. Without `sslrootcert` a certificate is checked against the public authorities.
pub(super) fn parse_address(text: &str) -> Result<Address, StoreError> {
    let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
    let (rest, own) = if is_url {
        split_url(text)
    } else {
        split_words(text)
    };
    let mode = find(&own, "sslmode").unwrap_or("prefer");
    let roots = find(&own, "sslrootcert").map(PathBuf::from);
    let wrong = |what: String| StoreError::Unavailable(format!("the database's address: {what}"));
    let (ssl_mode, check) = match (mode, roots) {
        ("disable", _) => (SslMode::Disable, Check::Nothing),
        ("prefer", _) => (SslMode::Prefer, Check::Nothing),
        ("require", None) => (SslMode::Require, Check::Nothing),
        ("require" | "verify-ca", roots) => (SslMode::Require, Check::Chain(roots)),
        ("verify-full", roots) => (SslMode::Require, Check::ChainAndName(roots)),
        (other, _) => return Err(wrong(format!("sslmode {other:?} is not known"))),
    };
    // Its error names the part that is wrong, not the password.
    let mut config: tokio_postgres::Config = rest
        .parse()
        .map_err(|error| wrong(super::error::in_full(&error)))?;
    config.ssl_mode(ssl_mode);
    Ok(Address { config, check })
}

type Own = Vec<(String, String)>;

fn is_own(name: &str) -> bool {
    matches!(name, "sslmode" | "sslrootcert")
}

fn find<'a>(own: &'a Own, name: &str) -> Option<&'a str> {
    let found = own.iter().rev().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

fn split_url(text: &str) -> (String, Own) {
    let (front, query) = text.split_once('?').unwrap_or((text, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let (own, rest): (Vec<&str>, Vec<&str>) =
        pairs.partition(|pair| is_own(pair.split('=').next().unwrap_or_default()));
    let own = own.iter().filter_map(|pair| pair.split_once('='));
    let own = own.map(|(name, value)| (name.to_owned(), unescaped(value)));
    let own = own.collect();
    match rest.join("&") {
        rest if rest.is_empty() => (front.to_owned(), own),
        rest => (format!("{front}?{rest}"), own),
    }
}

/// `%2F` and the like; a sign that is no escape stays as it is.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match code.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn split_words(text: &str) -> (String, Own) {
    let words = text.split_whitespace();
    let (own, rest): (Vec<&str>, Vec<&str>) =
        words.partition(|word| is_own(word.split('=').next().unwrap_or_default()));
    let own = own.iter().filter_map(|word| word.split_once('='));
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    (rest.join(" "), own.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sslmode_says_whether_to_encrypt_and_what_to_check() {
        let cases = [
            ("", SslMode::Prefer, "Nothing"),
            ("?sslmode=disable", SslMode::Disable, "Nothing"),
            ("?sslmode=require", SslMode::Require, "Nothing"),
            (
                "?sslmode=require&sslrootcert=/a%20b.pem",
                SslMode::Require,
                "Chain(Some(\"/a b.pem\"))",
            ),
            ("?sslmode=verify-ca", SslMode::Require, "Chain(None)"),
            (
                "?connect_timeout=3&sslmode=verify-full",
                SslMode::Require,
                "ChainAndName(None)",
            ),
        ];
        for (query, mode, check) in cases {
            let address = parse_address(&format!("postgres://u:p@h:5433/d{query}")).unwrap();
            assert_eq!(address.config.get_ssl_mode(), mode, "{query}");
            assert_eq!(format!("{:?}", address.check), check, "{query}");
            assert_eq!(address.config.get_dbname(), Some("d"));
        }
    }

    #[test]
    fn words_are_an_address_too_and_nonsense_is_refused_without_the_password() {
        let address = parse_address("host=/run/pg user=u sslmode=verify-full dbname=d").unwrap();
        assert!(matches!(address.check, Check::ChainAndName(None)));
        assert_eq!(address.config.get_user(), Some("u"));
        for wrong in [
            "postgres://u:secret@h:port/d",
            "postgres://u:secret@h/d?sslmode=maybe",
        ] {
            let error = parse_address(wrong).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
