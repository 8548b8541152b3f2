//! A key that signs result URLs, as it lies in the database: 32 bytes in hex.

use upscale_core::{NoRandomness, hex, random_bytes};

use crate::{SigningKey, StoreError};

/// Id and secret of a new key, as they are written.
pub(crate) fn new_signing_key() -> Result<(String, String), NoRandomness> {
    Ok((hex(&random_bytes::<4>()?), hex(&random_bytes::<32>()?)))
}

/// A key as it was read.
pub(crate) fn parse_signing_key(id: String, secret: &str) -> Result<SigningKey, StoreError> {
    match parse_secret(secret) {
        Some(secret) => Ok(SigningKey { id, secret }),
        None => Err(StoreError::Corrupt(format!(
            "signing key {id}: no 32 bytes of hex"
        ))),
    }
}

fn parse_secret(text: &str) -> Option<[u8; 32]> {
    let digit = |character: char| {
        character
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let digits: Vec<u8> = text.chars().map(digit).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect();
    bytes.try_into().ok()
}
