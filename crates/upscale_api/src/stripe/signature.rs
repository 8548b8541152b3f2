//! Stripe's signature of a webhook call: `Stripe-Signature: t=<Unix seconds>,v1=<hex>,…`, where `v1` is the HMAC-SHA256
//! of `<t>.<body>` under the endpoint's secret. While a secret is replaced Stripe signs with both, so any `v1` may match
//! any of ours. A call older or newer than five minutes is a recording.

use data_encoding::HEXLOWER_PERMISSIVE;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Either way; Stripe's own libraries allow as much.
const TOLERANCE_SECONDS: u64 = 300;
/// Of SHA-256.
const DIGEST_BYTES: usize = 32;
/// Signatures looked at in one header: Stripe sends one, two while a secret is replaced.
const SIGNATURES_MAX: usize = 8;

/// Why a call is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Distrust {
    /// The header is not there or says nothing.
    Unreadable,
    /// It was signed more than five minutes ago, or ahead.
    Stale,
    /// No signature fits.
    Wrong,
}

/// What the header says, before anyone looks at the body.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    /// As it was signed.
    signed_at: &'a str,
    signatures: Vec<Vec<u8>>,
}

/// Reads the header. Who sends none, or one of another time, has no body that we would wait for.
pub(super) fn read(header: &[u8], now_seconds: i64) -> Result<Claim<'_>, Distrust> {
    let header = str::from_utf8(header).map_err(|_| Distrust::Unreadable)?;
    let (mut signed_at, mut signatures) = (None, Vec::new());
    for part in header.split(',') {
        match part.trim().split_once('=') {
            Some(("t", value)) => signed_at = signed_at.or(Some(value)),
            Some(("v1", value)) if signatures.len() < SIGNATURES_MAX => {
                let digest = HEXLOWER_PERMISSIVE.decode(value.as_bytes()).ok();
                signatures.extend(digest.filter(|digest| digest.len() == DIGEST_BYTES));
            }
            _ => {}
        }
    }
    let signed_at = signed_at.ok_or(Distrust::Unreadable)?;
    let seconds: i64 = signed_at.parse().map_err(|_| Distrust::Unreadable)?;
    if signatures.is_empty() {
        return Err(Distrust::Unreadable);
    }
    if now_seconds.abs_diff(seconds) > TOLERANCE_SECONDS {
        return Err(Distrust::Stale);
    }
    Ok(Claim {
        signed_at,
        signatures,
    })
}

impl Claim<'_> {
    /// Whether the body was signed by someone who knows one of the secrets.
    pub(super) fn check(&self, body: &[u8], secrets: &[String]) -> Result<(), Distrust> {
        let fits = |secret: &String| fits(secret, self.signed_at, body, &self.signatures);
        match secrets.iter().any(fits) {
            true => Ok(()),
            false => Err(Distrust::Wrong),
        }
    }
}

/// `verify_slice` compares in constant time.
fn fits(secret: &str, signed_at: &str, body: &[u8], signatures: &[Vec<u8>]) -> bool {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return false;
    };
    mac.update(signed_at.as_bytes());
    mac.update(b".");
    mac.update(body);
    signatures
        .iter()
        .any(|signature| mac.clone().verify_slice(signature).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both looks at once, as they follow each other.
    fn check(
        header: &[u8],
        body: &[u8],
        secrets: &[String],
        now_seconds: i64,
    ) -> Result<(), Distrust> {
        read(header, now_seconds)?.check(body, secrets)
    }

    const SECRET: &str = "whsec_dGhlIHNlY3JldCBvZiBhIHRlc3Q";
    const BODY: &[u8] = br#"{"id":"evt_test_1","object":"event"}"#;
    const AT: i64 = 1_767_268_800;
    // Made by Python: hmac.new(secret, b"1767268800." + body, hashlib.sha256).hexdigest().
    const SIGNED: &str = "fc30155a8bbaf87f2584bd4e31f2e49dcfd01ef31a213d12641e89f4c29ab1ce";
    const SIGNED_EMPTY: &str = "da651d53a6db24f38535e9c58e4b474137a97e08d3277a3251058b2aaa4ff9db";
    const SIGNED_NEW: &str = "c926afbe17758bfb8d971f373a73237babddb2d9803c1925c83c7eca37645305";

    fn secrets(all: &[&str]) -> Vec<String> {
        all.iter().map(|&secret| secret.to_owned()).collect()
    }

    fn header(signatures: &[&str]) -> Vec<u8> {
        let signed: Vec<String> = signatures.iter().map(|one| format!("v1={one}")).collect();
        format!("t={AT},{}", signed.join(",")).into_bytes()
    }

    #[test]
    fn a_signature_made_elsewhere_is_believed() {
        let ours = secrets(&[SECRET]);
        assert_eq!(check(&header(&[SIGNED]), BODY, &ours, AT), Ok(()));
        let empty = format!("t={AT},v1={SIGNED_EMPTY},v0=00");
        assert_eq!(check(empty.as_bytes(), b"", &ours, AT), Ok(()));
        // As some write it: upper case, blanks, a scheme of tomorrow.
        let odd = format!("t={AT}, v2=x, v1={}", SIGNED.to_uppercase());
        assert_eq!(check(odd.as_bytes(), BODY, &ours, AT), Ok(()));
    }

    #[test]
    fn any_signature_may_fit_any_secret_while_one_is_replaced() {
        let both = secrets(&["whsec_new", SECRET]);
        assert_eq!(check(&header(&[SIGNED]), BODY, &both, AT), Ok(()));
        assert_eq!(
            check(
                &header(&[SIGNED_NEW, SIGNED]),
                BODY,
                &secrets(&[SECRET]),
                AT
            ),
            Ok(())
        );
        assert_eq!(
            check(
                &header(&[SIGNED, SIGNED_NEW]),
                BODY,
                &secrets(&["whsec_new"]),
                AT
            ),
            Ok(())
        );
    }

    #[test]
    fn another_secret_body_or_time_is_not() {
        let ours = secrets(&[SECRET]);
        let wrong = |header: &[u8], body: &[u8]| check(header, body, &ours, AT);
        assert_eq!(wrong(&header(&[SIGNED_NEW]), BODY), Err(Distrust::Wrong));
        assert_eq!(
            check(&header(&[SIGNED]), BODY, &[], AT),
            Err(Distrust::Wrong)
        );
        for at in 0..BODY.len() {
            let mut tampered = BODY.to_vec();
            tampered[at] ^= 1;
            assert_eq!(
                wrong(&header(&[SIGNED]), &tampered),
                Err(Distrust::Wrong),
                "{at}"
            );
        }
        // The time is signed, too.
        let later = format!("t={},v1={SIGNED}", AT + 1);
        assert_eq!(wrong(later.as_bytes(), BODY), Err(Distrust::Wrong));
        // Half a signature is none.
        let short = wrong(&header(&[&SIGNED[..62]]), BODY);
        assert_eq!(short, Err(Distrust::Unreadable));
    }

    #[test]
    fn five_minutes_are_borne_and_a_second_more_is_a_recording() {
        let ours = secrets(&[SECRET]);
        for (now, expected) in [
            (AT + 300, Ok(())),
            (AT - 300, Ok(())),
            (AT + 301, Err(Distrust::Stale)),
            (AT - 301, Err(Distrust::Stale)),
            (i64::MIN, Err(Distrust::Stale)),
        ] {
            assert_eq!(
                check(&header(&[SIGNED]), BODY, &ours, now),
                expected,
                "{now}"
            );
        }
    }

    #[test]
    fn what_says_nothing_is_unreadable() {
        let ours = secrets(&[SECRET]);
        let no_time = format!("v1={SIGNED}");
        let no_number = format!("t=now,v1={SIGNED}");
        for text in [
            "",
            "t=",
            "t=1",
            ",,,",
            "t=1,v0=00",
            "t=1,v1=",
            "t=1,v1=zz",
            &no_time,
            &no_number,
        ] {
            let judged = check(text.as_bytes(), BODY, &ours, AT);
            assert!(judged.is_err(), "{text}");
        }
        assert_eq!(
            check(&[0xff, b'='], BODY, &ours, AT),
            Err(Distrust::Unreadable)
        );
        let zeros = "00".repeat(DIGEST_BYTES);
        let many = vec![zeros.as_str(); 10_000];
        assert_eq!(check(&header(&many), BODY, &ours, AT), Err(Distrust::Wrong));
    }
}
