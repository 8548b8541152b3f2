//! The customer's name for a request, and the fingerprint that tells whether two requests are the same.

use sha2::{Digest, Sha256};

use crate::{InvalidRequest, NewTask, api_key::hex, limits};

/// An `Idempotency-Key`: 8–128 visible ASCII characters. `Debug` hides it: it is the customer's secret.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Checks one header value.
    ///
    /// # Errors
    /// [`InvalidRequest::IdempotencyKey`] when a byte is not visible ASCII or the length is out of range.
    pub fn parse(value: &[u8]) -> Result<Self, InvalidRequest> {
        let lengths = limits::IDEMPOTENCY_KEY_CHARS_MIN..=limits::IDEMPOTENCY_KEY_CHARS_MAX;
        if !lengths.contains(&value.len()) || !value.iter().all(u8::is_ascii_graphic) {
            return Err(InvalidRequest::IdempotencyKey);
        }
        Ok(Self(value.iter().map(|&byte| char::from(byte)).collect()))
    }

    /// As the customer sent it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("IdempotencyKey(hidden)")
    }
}

/// SHA-256 (lower-case hex) of the parameters after defaults, `image_url` byte for byte. The first line
/// names the form, so that a parameter added later cannot collide with today's fingerprints.
#[must_use]
pub fn fingerprint(task: &NewTask) -> String {
    let canonical = format!(
        "upscale-1\n{}output_format=png\nimage_url={}",
        task.parameters.fingerprint_lines(),
        task.source_url.as_str()
    );
    hex(&Sha256::digest(canonical.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Parameters, Scale, SourceUrl};

    #[test]
    fn a_key_is_8_to_128_visible_characters() {
        for good in [&b"12345678"[..], &[b'~'; 128]] {
            assert!(IdempotencyKey::parse(good).is_ok());
        }
        for bad in [
            &b"1234567"[..],
            &[b'a'; 129],
            b"with space",
            b"tab\there!",
            b"d\xc3\xa9j\xc3\xa0-vu-1",
        ] {
            assert_eq!(
                IdempotencyKey::parse(bad),
                Err(InvalidRequest::IdempotencyKey)
            );
        }
    }

    #[test]
    fn every_parameter_changes_the_fingerprint() {
        let task = |url: &str, scale, face_enhance| NewTask {
            source_url: SourceUrl::parse(url).unwrap(),
            parameters: Parameters {
                face_enhance,
                ..Parameters::at(scale)
            },
        };
        let base = fingerprint(&task("https://a.example.org/a.png", Scale::X2, false));
        assert_eq!(
            base,
            fingerprint(&task("https://a.example.org/a.png", Scale::X2, false))
        );
        assert_ne!(
            base,
            fingerprint(&task("https://a.example.org/a.png?", Scale::X2, false))
        );
        assert_ne!(
            base,
            fingerprint(&task("https://a.example.org/a.png", Scale::X4, false))
        );
        assert_ne!(
            base,
            fingerprint(&task("https://a.example.org/a.png", Scale::X2, true))
        );
    }

    /// Computed apart from this code, with sha256sum: rows of 90 days hold such fingerprints.
    #[test]
    fn a_request_keeps_its_fingerprint() {
        let task = NewTask {
            source_url: SourceUrl::parse("https://a.example.org/a.png").unwrap(),
            parameters: Parameters::at(Scale::X4),
        };
        assert_eq!(
            fingerprint(&task),
            "c4bc8debdbe62e9fd59a0a919fd0e02cedf5d075ebe80938373ce706c3918424"
        );
    }
}
