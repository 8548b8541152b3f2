//! One `Range: bytes=…` against a file of known size (RFC 9110 section 14).

use std::ops::Range;

/// What of the file is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All of it: no range, several ranges or an unknown unit, all of which a server may ignore.
    Whole,
    /// These bytes, end exclusive, within the file and not empty.
    Part(Range<u64>),
    /// Bytes that do not exist.
    Unsatisfiable,
}

/// Reads the header's value; what is not a single well-formed byte range is ignored.
pub(crate) fn asked(value: &str, size_bytes: u64) -> Asked {
    let Some((first, last)) = single_range(value) else {
        return Asked::Whole;
    };
    match (number(first), number(last)) {
        (Some(start), None) if last.is_empty() => part(start, size_bytes, size_bytes),
        (Some(start), Some(last)) if start <= last => {
            part(start, last.saturating_add(1), size_bytes)
        }
        (None, Some(count)) if first.is_empty() => {
            part(size_bytes.saturating_sub(count), size_bytes, size_bytes)
        }
        _ => Asked::Whole,
    }
}

fn single_range(value: &str) -> Option<(&str, &str)> {
    let (unit, ranges) = value.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") || ranges.contains(',') {
        return None;
    }
    ranges.trim().split_once('-')
}

/// Digits alone; more than 64 bits of them saturate, which lies outside every file.
fn number(text: &str) -> Option<u64> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().unwrap_or(u64::MAX))
}

fn part(start: u64, end: u64, size_bytes: u64) -> Asked {
    let end = end.min(size_bytes);
    if start < end {
        return Asked::Part(start..end);
    }
    Asked::Unsatisfiable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_range_is_cut_to_the_file_and_everything_else_is_ignored() {
        for (value, expected) in [
            ("bytes=0-0", Asked::Part(0..1)),
            ("bytes=0-99", Asked::Part(0..100)),
            ("bytes=0-100", Asked::Part(0..100)),
            ("bytes=90-", Asked::Part(90..100)),
            ("bytes=-1", Asked::Part(99..100)),
            ("bytes=-1000", Asked::Part(0..100)),
            ("BYTES = 5-6", Asked::Part(5..7)),
            ("bytes=99-18446744073709551615", Asked::Part(99..100)),
            ("bytes=100-", Asked::Unsatisfiable),
            ("bytes=100-200", Asked::Unsatisfiable),
            ("bytes=-0", Asked::Unsatisfiable),
            ("bytes=99999999999999999999999-", Asked::Unsatisfiable),
            ("bytes=2-1", Asked::Whole),
            ("bytes=0-1,3-4", Asked::Whole),
            ("bytes=", Asked::Whole),
            ("bytes=-", Asked::Whole),
            ("bytes=a-b", Asked::Whole),
            ("bytes=+1-2", Asked::Whole),
            ("bytes=1--2", Asked::Whole),
            ("items=0-1", Asked::Whole),
            ("", Asked::Whole),
        ] {
            assert_eq!(asked(value, 100), expected, "{value:?}");
        }
    }

    #[test]
    fn nothing_of_an_empty_file_can_be_had() {
        assert_eq!(asked("bytes=0-", 0), Asked::Unsatisfiable);
        assert_eq!(asked("bytes=-5", 0), Asked::Unsatisfiable);
    }
}
