//! What is asked for, and the name under which it is asked once.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind};

/// One image to upscale. The service checks it: a wrong value comes back as [`ErrorKind::Status`](crate::ErrorKind::Status) with its words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Order {
    /// Public HTTPS address whose path ends in .jpg, .jpeg, .png or .webp.
    pub image_url: String,
    /// Factor of enlargement, 2 or 4.
    pub scale: u32,
    /// Improve faces. The input may then have 0.8 MP at 2x and 0.5 MP at 4x instead of 1.5 and 0.75.
    pub face_enhance: bool,
}

impl Order {
    /// Of this image at 2x, faces as they are.
    #[must_use]
    pub fn new(image_url: impl Into<String>) -> Self {
        Self {
            image_url: image_url.into(),
            scale: 2,
            face_enhance: false,
        }
    }

    /// At another scale: 2 or 4.
    #[must_use]
    pub fn scale(mut self, scale: u32) -> Self {
        self.scale = scale;
        self
    }

    /// With or without improving faces.
    #[must_use]
    pub fn face_enhance(mut self, face_enhance: bool) -> Self {
        self.face_enhance = face_enhance;
        self
    }
}

/// Names one logical order: 8 to 128 visible ASCII characters, unique within the account for as long as the service
/// keeps records (90 days).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// A new one of 128 random bits.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] when the operating system provided no random bytes.
    pub fn mint() -> Result<Self, Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| ErrorKind::Setup(error.to_string()))?;
        Ok(Self(hex(&bytes)))
    }

    /// One that was written down before, or the caller's own name for the image.
    ///
    /// # Errors
    /// [`ErrorKind::Setup`] unless it has 8 to 128 visible ASCII characters.
    pub fn parse(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_visible && (8..=128).contains(&text.len()) {
            return Ok(Self(text));
        }
        Err(ErrorKind::Setup(format!(
            "an idempotency key has 8 to 128 visible ASCII characters; this one has {} bytes",
            text.len()
        ))
        .into())
    }

    /// As it is sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn minted_keys_are_valid_and_differ() {
        let (one, other) = (
            IdempotencyKey::mint().unwrap(),
            IdempotencyKey::mint().unwrap(),
        );
        assert_ne!(one, other);
        assert_eq!(IdempotencyKey::parse(one.as_str()).unwrap(), one);
    }

    #[test]
    fn a_key_the_service_would_refuse_is_refused_here() {
        for bad in ["short", "with space", "line\nbreak-", "ümlaut-12"] {
            assert!(IdempotencyKey::parse(bad).is_err(), "{bad}");
        }
        assert!(IdempotencyKey::parse("x".repeat(129)).is_err());
        assert!(IdempotencyKey::parse("x".repeat(128)).is_ok());
    }

    #[test]
    fn an_order_is_sent_as_the_contract_names_it() {
        let order = Order::new("https://a.example.com/b.png").scale(4);
        assert_eq!(
            serde_json::to_string(&order).unwrap(),
            r#"{"image_url":"https://a.example.com/b.png","scale":4,"face_enhance":false}"#
        );
    }
}
