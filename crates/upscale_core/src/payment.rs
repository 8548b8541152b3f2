//! Money of the outside world: what a package of credits costs, and how many credits go back when a payment does.

use std::fmt;

use crate::Credits;

/// An ISO 4217 code in lower case, as Stripe writes it: `usd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Currency(String);

/// The text is not a currency's code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a currency: expected three letters such as usd")]
pub struct NotCurrency;

/// Currencies that have no smaller unit: an amount of 500 is 500 of them.
const WITHOUT_CENTS: [&str; 15] = [
    "bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "vnd", "vuv", "xaf",
    "xof", "xpf",
];

impl Currency {
    /// Three letters, in whichever case.
    ///
    /// # Errors
    /// [`NotCurrency`] for anything else.
    pub fn parse(text: &str) -> Result<Self, NotCurrency> {
        if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Ok(Self(text.to_ascii_lowercase()));
        }
        Err(NotCurrency)
    }

    /// ISO 4217 code in lower case, as Stripe has it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// An amount as people write it, in the smallest unit: `9.90` is 990. None for signs, a third decimal, and
    /// decimals where the currency has none.
    #[must_use]
    pub fn parse_amount(&self, text: &str) -> Option<i64> {
        let (whole, cents) = text.split_once('.').unwrap_or((text, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || whole.len() > 9 || !all_digits(whole) || !all_digits(cents) {
            return None;
        }
        let whole: i64 = whole.parse().ok()?;
        if WITHOUT_CENTS.contains(&self.0.as_str()) {
            return (!text.contains('.')).then_some(whole);
        }
        let is_whole = !text.contains('.');
        if !is_whole && !(1..=2).contains(&cents.len()) {
            return None;
        }
        let cents: i64 = format!("{cents:0<2}").parse().ok()?;
        Some(whole * 100 + cents)
    }

    /// An amount in the smallest unit as people read it: `19.90 USD`, `500 JPY`.
    #[must_use]
    pub fn show(&self, amount: i64) -> String {
        let code = self.0.to_ascii_uppercase();
        if WITHOUT_CENTS.contains(&self.0.as_str()) {
            return format!("{amount} {code}");
        }
        let sign = if amount < 0 { "-" } else { "" };
        let cents = amount.unsigned_abs();
        format!("{sign}{}.{:02} {code}", cents / 100, cents % 100)
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A row of the operator's price table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its name in forms, rows and reports: lower-case letters, digits and hyphens.
    pub name: String,
    /// What the buyer gets, above 0.
    pub credits: Credits,
    /// What the customer pays, above 0, in the currency's smallest unit.
    pub price: i64,
    /// ISO 4217 code of the price.
    pub currency: Currency,
}

/// What was reported of money that went back to a payer, in the currency's smallest unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Returns {
    /// The largest sum of refunds that the charge ever told.
    pub returned_by_charge: i64,
    /// The refunds reported one by one, without those that failed.
    pub refunds: i64,
    /// Whether a refund failed: then the charge's sum may be too large, and the refunds alone count.
    pub a_refund_failed: bool,
    /// Disputes whose money was withdrawn and not given back.
    pub disputes: i64,
}

/// How much of the price is with the payer again, at most all of it.
#[must_use]
pub fn returned_amount(returns: Returns, price: i64) -> i64 {
    let refunded = if returns.a_refund_failed {
        returns.refunds
    } else {
        returns.refunds.max(returns.returned_by_charge)
    };
    refunded.saturating_add(returns.disputes).clamp(0, price)
}

/// The credits that `returned` of `price` stands for: proportional, rounded down in the customer's favour, and all of
/// them when all was returned.
#[must_use]
pub fn credits_to_take_back(credits: Credits, price: i64, returned: i64) -> Credits {
    let returned = i128::from(returned.clamp(0, price));
    let share = i128::from(credits.thousandths()) * returned / i128::from(price.max(1));
    Credits::from_thousandths(i64::try_from(share).unwrap_or(credits.thousandths()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Credits = Credits::from_thousandths(10_000);

    #[test]
    fn a_currency_is_three_letters_and_amounts_are_shown_in_its_units() {
        let usd = Currency::parse("USD").unwrap();
        assert_eq!(
            (usd.as_str(), usd.show(1_990).as_str()),
            ("usd", "19.90 USD")
        );
        assert_eq!(usd.show(-5), "-0.05 USD");
        assert_eq!(Currency::parse("jpy").unwrap().show(500), "500 JPY");
        for wrong in ["", "us", "usdt", "u1d", "€uro"] {
            assert_eq!(Currency::parse(wrong), Err(NotCurrency), "{wrong}");
        }
    }

    #[test]
    fn a_price_is_written_in_the_currencys_units() {
        let (usd, jpy) = (
            Currency::parse("usd").unwrap(),
            Currency::parse("jpy").unwrap(),
        );
        assert_eq!(
            ["9.90", "9.9", "9", "0.05"].map(|text| usd.parse_amount(text)),
            [Some(990), Some(990), Some(900), Some(5)]
        );
        assert_eq!(jpy.parse_amount("1500"), Some(1_500));
        assert_eq!(
            [jpy.parse_amount("15.0"), jpy.parse_amount("15.")],
            [None, None]
        );
        for wrong in [
            "",
            ".5",
            "9.",
            "9.999",
            "-9",
            "+9",
            "9,90",
            "1e2",
            "1234567890",
            "9.-1",
        ] {
            assert_eq!(usd.parse_amount(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_part_of_the_price_takes_back_its_part_of_the_credits_rounded_down() {
        let back = |returned| credits_to_take_back(TEN, 999, returned).thousandths();
        assert_eq!(
            [back(0), back(1), back(500), back(998), back(999)],
            [0, 10, 5_005, 9_989, 10_000]
        );
        assert_eq!([back(-1), back(2_000)], [0, 10_000]);
        let most = Credits::from_thousandths(i64::MAX);
        assert_eq!(credits_to_take_back(most, i64::MAX, i64::MAX), most);
    }

    #[test]
    fn refunds_told_twice_count_once_and_failed_ones_not_at_all() {
        let returned = |returned_by_charge, refunds, a_refund_failed, disputes| {
            let returns = Returns {
                returned_by_charge,
                refunds,
                a_refund_failed,
                disputes,
            };
            returned_amount(returns, 1_000)
        };
        assert_eq!(returned(300, 0, false, 0), 300);
        assert_eq!(returned(300, 300, false, 0), 300);
        assert_eq!(returned(300, 500, false, 0), 500);
        assert_eq!(returned(300, 0, true, 0), 0);
        assert_eq!(returned(300, 0, false, 200), 500);
        assert_eq!(returned(1_000, 0, false, 1_000), 1_000);
        assert_eq!(returned(i64::MAX, 0, false, i64::MAX), 1_000);
    }
}
