//! What people type on the command line and in the consoles: each parser takes one text and gives a value that cannot
//! be wrong, or a sentence that says why not.

use crate::{
    Credits,
    limits::{ACCOUNT_LIMIT_MAX, NAME_CHARS_MAX, REASON_CHARS_MAX, REFERENCE_BYTES_MAX},
};

/// A name of 1 to 100 characters, in one line.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn parse_name(text: &str) -> Result<String, String> {
    check_one_line(text)?;
    let chars = text.chars().count();
    let allowed = 1..=NAME_CHARS_MAX;
    if allowed.contains(&chars) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "a name has 1 to {NAME_CHARS_MAX} characters, this one {chars}"
    ))
}

/// A reference of 1 to 200 bytes, in one line.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn parse_reference(text: &str) -> Result<String, String> {
    check_one_line(text)?;
    let bytes = text.len();
    let allowed = 1..=REFERENCE_BYTES_MAX;
    if allowed.contains(&bytes) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "a reference has 1 to {REFERENCE_BYTES_MAX} bytes, this one {bytes}"
    ))
}

/// A reason of 1 to 500 characters, in one line, without blanks around it.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn parse_reason(text: &str) -> Result<String, String> {
    check_one_line(text)?;
    let chars = text.trim().chars().count();
    if (1..=REASON_CHARS_MAX).contains(&chars) {
        return Ok(text.trim().to_owned());
    }
    Err(format!(
        "a reason has 1 to {REASON_CHARS_MAX} characters, this one {chars}"
    ))
}

/// One limit of an account: its own number, or none for `contract`.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn parse_own_limit(text: &str) -> Result<Option<u32>, String> {
    if text == "contract" {
        return Ok(None);
    }
    let number = text
        .parse()
        .ok()
        .filter(|number| (1..=ACCOUNT_LIMIT_MAX).contains(number));
    match number {
        Some(number) => Ok(Some(number)),
        None => Err(format!("a limit is 1 to {ACCOUNT_LIMIT_MAX}, or contract")),
    }
}

/// Credits above or below 0.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn parse_signed_credits(text: &str) -> Result<Credits, String> {
    let (size, sign) = match text.strip_prefix('-') {
        Some(size) => (size, -1),
        None => (text, 1),
    };
    let credits = Credits::parse(size).map_err(|error| error.to_string())?;
    if credits == Credits::ZERO {
        return Err("an adjustment is above or below 0".to_owned());
    }
    Ok(Credits::from_thousandths(credits.thousandths() * sign))
}

/// A line break or an escape sequence would forge lines in tables and logs.
///
/// # Errors
/// A sentence that names the character.
pub fn check_one_line(text: &str) -> Result<(), String> {
    match text.chars().find(|character| character.is_control()) {
        None => Ok(()),
        Some(character) => Err(format!(
            "the control character {character:?} is not allowed"
        )),
    }
}
