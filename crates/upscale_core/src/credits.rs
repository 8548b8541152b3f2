//! Money of the service: exact thousandths of a credit, never a float.

use std::{fmt, iter::Sum};

/// An amount in thousandths of a credit; negative only as a difference. Displays as the shortest
/// decimal, which is also the JSON number of the contract: `0.7`, `0`, `12.345`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Credits(i64);

/// The text is not an amount of credits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an amount of credits: expected up to 12 digits and at most 3 decimals, such as 10 or 0.7"
)]
pub struct NotCredits;

impl Credits {
    /// No credits.
    pub const ZERO: Self = Self(0);

    /// From thousandths of a credit.
    #[must_use]
    pub const fn from_thousandths(thousandths: i64) -> Self {
        Self(thousandths)
    }

    /// In thousandths of a credit.
    #[must_use]
    pub const fn thousandths(self) -> i64 {
        self.0
    }

    /// Parses a non-negative decimal of at most 12 digits before and 3 after the point.
    ///
    /// # Errors
    /// [`NotCredits`] for anything else: signs, exponents, blanks, a fourth decimal.
    pub fn parse(text: &str) -> Result<Self, NotCredits> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(whole) || !all_digits(decimals) || whole.len() > 12 || decimals.len() > 3 {
            return Err(NotCredits);
        }
        let whole: i64 = whole.parse().map_err(|_| NotCredits)?;
        let decimals: i64 = format!("{decimals:0<3}").parse().map_err(|_| NotCredits)?;
        Ok(Self(whole * 1000 + decimals))
    }
}

impl fmt::Display for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, rest) = (self.0.unsigned_abs() / 1000, self.0.unsigned_abs() % 1000);
        if rest == 0 {
            return write!(f, "{sign}{whole}");
        }
        let decimals = format!("{rest:03}");
        write!(f, "{sign}{whole}.{}", decimals.trim_end_matches('0'))
    }
}

impl Sum for Credits {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        Self(amounts.map(|credits| credits.0).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_price_prints_as_the_contract_writes_it() {
        assert_eq!(crate::limits::PRICE.to_string(), "0.7");
        assert_eq!(Credits::ZERO.to_string(), "0");
        assert_eq!(Credits::from_thousandths(-1_050).to_string(), "-1.05");
    }

    #[test]
    fn what_is_not_a_plain_decimal_is_refused() {
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "1.2345",
            " 1",
            "0x1",
            "1234567890123",
        ] {
            assert_eq!(Credits::parse(text), Err(NotCredits), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_parsing_are_inverse(thousandths in 0i64..1_000_000_000_000_000) {
            let credits = Credits::from_thousandths(thousandths);
            prop_assert_eq!(Credits::parse(&credits.to_string()), Ok(credits));
        }
    }
}
