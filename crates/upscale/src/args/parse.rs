//! What a flag's text means: each parser takes one text and gives a value that cannot be wrong, or says why not.

use std::{net::SocketAddr, path::PathBuf, str::FromStr};

use upscale_core::{Credits, Currency, Email, Package, Permission, Scale, parse_own_limit};
pub(super) use upscale_core::{parse_name, parse_reason, parse_reference, parse_signed_credits};

/// Columns and rows, as in `640x480`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PictureSize {
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// Largest side that a benchmark takes.
const SIDE_MAX: usize = 20_000;

impl FromStr for PictureSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            part.parse()
                .ok()
                .filter(|side| (1..=SIDE_MAX).contains(side))
        };
        let sides = text
            .split_once('x')
            .map(|(width, height)| (number(width), number(height)));
        match sides {
            Some((Some(width), Some(height))) => Ok(Self { width, height }),
            _ => Err(format!(
                "not a size such as 640x480, sides from 1 to {SIDE_MAX}"
            )),
        }
    }
}

/// Nothing but PNG is written, so a file that would be called something else is refused.
pub(super) fn parse_png_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy());
    match extension {
        Some(extension) if extension.eq_ignore_ascii_case("png") => Ok(path),
        _ => Err("the result is a PNG: its name must end in .png".to_owned()),
    }
}

pub(super) fn parse_scale(text: &str) -> Result<Scale, String> {
    let factor = text.parse().ok().and_then(Scale::from_factor);
    factor.ok_or_else(|| "scale must be 2 or 4".to_owned())
}

/// A part of a whole.
pub(super) fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok();
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "not a share from 0 to 1".to_owned())
}

/// One limit of an account: its own number, or none for the contract's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OneLimit(pub(crate) Option<u32>);

pub(super) fn parse_limit(text: &str) -> Result<OneLimit, String> {
    parse_own_limit(text).map(OneLimit)
}

pub(super) fn parse_email(text: &str) -> Result<Email, String> {
    Email::parse(text).map_err(|error| error.to_string())
}

pub(super) fn parse_permission(text: &str) -> Result<Permission, String> {
    Permission::parse(text).ok_or_else(|| "permission must be read, write or all".to_owned())
}

/// An address that clients are told: scheme and host, perhaps a path, nothing after it.
pub(super) fn parse_public_url(text: &str) -> Result<String, String> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    match rest {
        Some(rest)
            if !rest.is_empty()
                && !rest.contains(['?', '#', ' ', '@'])
                && !rest.starts_with('/') =>
        {
            Ok(text.trim_end_matches('/').to_owned())
        }
        _ => Err("must be an address such as https://api.example.com".to_owned()),
    }
}

/// `NAME=CREDITS:PRICE:CURRENCY`.
pub(super) fn parse_package(text: &str) -> Result<Package, String> {
    let (name, rest) = text
        .split_once('=')
        .ok_or("a package is NAME=CREDITS:PRICE:CURRENCY, such as small=100:9.90:eur")?;
    let [credits, price, currency] = rest.split(':').collect::<Vec<_>>()[..] else {
        return Err(
            "a package has credits, a price and a currency, such as 100:9.90:eur".to_owned(),
        );
    };
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !(1..=40).contains(&name.len()) || !name.bytes().all(is_allowed) {
        return Err(
            "a package's name has 1 to 40 lower-case letters, digits and hyphens".to_owned(),
        );
    }
    let credits = Credits::parse(credits).map_err(|error| error.to_string())?;
    let currency = Currency::parse(currency).map_err(|error| error.to_string())?;
    let price = currency
        .parse_amount(price)
        .ok_or_else(|| format!("{price} is not a price in {currency}, such as 9.90"))?;
    if credits == Credits::ZERO || price == 0 {
        return Err("a package must have more than 0 credits and a price above 0".to_owned());
    }
    Ok(Package {
        name: name.to_owned(),
        credits,
        price,
        currency,
    })
}

/// HTTPS, but for a Stripe of this machine's own.
pub(super) fn parse_stripe_api(text: &str) -> Result<String, String> {
    let url = parse_public_url(text)?;
    let is_of_loopback = url.starts_with("http://127.0.0.1:") || url.starts_with("http://[::1]:");
    if url.starts_with("https://") || is_of_loopback {
        return Ok(url);
    }
    Err("Stripe's secret key is sent over HTTPS only, but for 127.0.0.1".to_owned())
}

/// As `--admin-listen` says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AdminAddress {
    /// A socket's file.
    Unix(PathBuf),
    /// An address of this machine's own network.
    Loopback(SocketAddr),
}

/// `unix:FILE`, or an address and a port that only this machine reaches.
pub(super) fn parse_address(text: &str) -> Result<AdminAddress, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return match path {
            "" => Err("a file is missing after unix:".to_owned()),
            path => Ok(AdminAddress::Unix(path.into())),
        };
    }
    let address: SocketAddr = text.parse().map_err(|_| {
        "must be unix:FILE, such as unix:/run/upscale/admin.sock, or a loopback address and port".to_owned()
    })?;
    if !address.ip().to_canonical().is_loopback() {
        return Err(format!(
            "{address} can be reached from other machines: the operators' console listens only on unix:FILE or a loopback address"
        ));
    }
    Ok(AdminAddress::Loopback(address))
}

/// Octal permissions of the socket's file.
pub(super) fn parse_mode(text: &str) -> Result<u32, String> {
    match text.trim_start_matches('0') {
        "600" => Ok(0o600),
        "660" => Ok(0o660),
        _ => Err("must be 600 (its owner) or 660 (its group, too)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_a_name_credits_a_price_and_a_currency() {
        let package = parse_package("small-1=0.7:9.90:EUR").unwrap();
        assert_eq!(
            (package.name.as_str(), package.credits.thousandths()),
            ("small-1", 700)
        );
        assert_eq!((package.price, package.currency.as_str()), (990, "eur"));
        assert_eq!(parse_package("a=100:1500:jpy").unwrap().price, 1_500);
        for wrong in [
            "",
            "small",
            "small=100",
            "small=100:9",
            "small=100:9:eur:x",
            "Small=100:9:eur",
            "=100:9:eur",
            "small=0:9:eur",
            "small=100:0:eur",
            "small=100:9.999:eur",
            "small=100:9.9:jpy",
            "small=100:-9:eur",
            "small=100:9:euro",
            "small=1e3:9:eur",
        ] {
            assert!(parse_package(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_and_signed_credits_say_what_they_are() {
        assert_eq!(parse_limit("contract"), Ok(OneLimit(None)));
        assert_eq!(parse_limit("40"), Ok(OneLimit(Some(40))));
        for wrong in ["0", "-1", "1000001", "many", ""] {
            assert!(parse_limit(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_signed_credits("-0.7").unwrap().thousandths(), -700);
        assert_eq!(parse_signed_credits("5").unwrap().thousandths(), 5_000);
        for wrong in ["0", "-0", "--1", "+1", "-", ""] {
            assert!(parse_signed_credits(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn stripes_key_goes_over_https_or_stays_on_the_machine() {
        assert!(parse_stripe_api("https://api.stripe.com").is_ok());
        assert!(parse_stripe_api("http://127.0.0.1:9").is_ok());
        for wrong in [
            "http://api.stripe.com",
            "http://127.0.0.1.example.org",
            "ftp://a",
        ] {
            assert!(parse_stripe_api(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_this_machine_is_listened_to() {
        for (text, is_taken) in [
            ("unix:/run/upscale/admin.sock", true),
            ("127.0.0.1:8083", true),
            ("127.8.0.1:0", true),
            ("[::1]:8083", true),
            ("[::ffff:127.0.0.1]:8083", true),
            ("unix:", false),
            ("0.0.0.0:8083", false),
            ("[::]:8083", false),
            ("192.168.1.2:8083", false),
            ("localhost:8083", false),
            ("/run/upscale/admin.sock", false),
        ] {
            assert_eq!(parse_address(text).is_ok(), is_taken, "{text}");
        }
        assert_eq!(
            (parse_mode("600"), parse_mode("0660")),
            (Ok(0o600), Ok(0o660))
        );
        for wrong in ["666", "777", "", "60"] {
            assert!(parse_mode(wrong).is_err(), "{wrong}");
        }
    }
}
