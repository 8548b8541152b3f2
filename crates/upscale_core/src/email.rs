//! Email addresses as people sign in with them: one spelling an address, so that no one signs up twice by case.

use std::fmt;

/// Longest address that mail can carry (RFC 5321 section 4.5.3.1.3, without its angle brackets).
const CHARS_MAX: usize = 254;

/// An address in lower case. Whether anyone reads it is not known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Email(String);

/// The text is no e-mail address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("An email address looks like name@example.com and has at most {CHARS_MAX} characters.")]
pub struct NotAnEmail;

impl Email {
    /// Takes blanks around it away and lowers its case. What stands before the @ may be anything printable; the
    /// domain needs a dot.
    ///
    /// # Errors
    /// [`NotAnEmail`] when it cannot be an address.
    pub fn parse(text: &str) -> Result<Self, NotAnEmail> {
        let text = text.trim();
        let (local, domain) = text.rsplit_once('@').ok_or(NotAnEmail)?;
        let is_local = !local.is_empty()
            && local
                .chars()
                .all(|c| c.is_ascii_graphic() && !"<>()[],;:\\\"@".contains(c));
        let is_domain = domain.contains('.')
            && domain.split('.').all(|label| {
                !label.is_empty()
                    && !label.starts_with('-')
                    && !label.ends_with('-')
                    && label
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b == b'-')
            });
        if !is_local || !is_domain || text.len() > CHARS_MAX {
            return Err(NotAnEmail);
        }
        Ok(Self(text.to_ascii_lowercase()))
    }

    /// The address in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_one_spelling() {
        let parsed = Email::parse("  Ann.Lee+x@Example.COM ").unwrap();
        assert_eq!(parsed.as_str(), "ann.lee+x@example.com");
    }

    #[test]
    fn what_cannot_be_an_address_is_refused() {
        let long = format!("{}@example.com", "a".repeat(250));
        for text in [
            "",
            "@",
            "a@",
            "@b.c",
            "a@b",
            "a b@c.de",
            "a@b..c",
            "a@-b.c",
            "a@b.c-",
            "<a@b.c>",
            "a\u{e9}@b.c",
            "a@b.c\nx: y",
            "a@b@c.d",
            &long,
        ] {
            assert_eq!(Email::parse(text), Err(NotAnEmail), "{text:?}");
        }
    }
}
