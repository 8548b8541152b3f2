//! What a request would like beyond what it must have: the header `Prefer` (RFC 7240), of which `wait` alone is known. What
//! cannot be read is as if it were not there; no preference is ever a reason to refuse.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};
use upscale_core::limits::WAIT_SECONDS_MAX;

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// How long the caller would like to be held: 1 to 30 s. None where that is not asked, or not so that it can be read.
pub(crate) fn asked_wait(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(PREFER).into_iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut waits = values.flat_map(|value| split(value, ',')).filter_map(wait);
    // Section 2: of a preference that is given twice, the first counts.
    let seconds = waits.next()?.parse::<u64>().ok()?.min(WAIT_SECONDS_MAX);
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// The value of a preference that is `wait`, its parameters left out.
fn wait(preference: &str) -> Option<&str> {
    let preference = split(preference, ';').into_iter().next()?;
    let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
    let is_wait = name.trim().eq_ignore_ascii_case("wait");
    let value = value.trim();
    let unquoted = value
        .strip_prefix('"')
        .and_then(|one| one.strip_suffix('"'));
    is_wait.then(|| unquoted.unwrap_or(value))
}

/// At every separator outside of quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let is_end = |letter: char| {
        let is_plain = !std::mem::take(&mut is_escaped);
        match letter {
            '"' if is_plain => is_quoted = !is_quoted,
            '\\' if is_plain && is_quoted => is_escaped = true,
            _ => {}
        }
        letter == separator && !is_quoted
    };
    text.split(is_end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(values: &[&str]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(PREFER, value.parse().unwrap());
        }
        asked_wait(&headers).map(|wait| wait.as_secs())
    }

    #[test]
    fn a_wait_is_found_among_other_preferences() {
        for value in [
            "wait=9",
            "WAIT = 9",
            "wait=\"9\"",
            "respond-async, wait=9",
            "respond-async,wait=9;x=y",
            "a=\"b, wait=1\", wait=9",
            "a=\"\\\", wait=1\", wait=9",
            ",,wait=9,",
            "wait=9, wait=1",
        ] {
            assert_eq!(seconds(&[value]), Some(9), "{value}");
        }
        assert_eq!(seconds(&["respond-async", "wait=9", "wait=1"]), Some(9));
    }

    #[test]
    fn no_one_is_held_longer_than_thirty_seconds() {
        assert_eq!(seconds(&["wait=30"]), Some(30));
        assert_eq!(seconds(&["wait=31"]), Some(30));
        assert_eq!(seconds(&["wait=18446744073709551615"]), Some(30));
    }

    #[test]
    fn what_cannot_be_read_is_not_there() {
        for value in [
            "",
            "wait",
            "wait=",
            "wait=0",
            "wait=-1",
            "wait=1.5",
            "wait=x",
            "wait=99999999999999999999999",
            "await=9",
            "wait=x, wait=9",
            "a=\"wait=9",
            "a;wait=9",
            "\u{fc}",
        ] {
            assert_eq!(seconds(&[value]), None, "{value}");
        }
        assert_eq!(seconds(&[]), None);
    }
}
