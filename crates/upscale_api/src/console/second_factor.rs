//! The second factor: six digits from an authenticator (RFC 6238, SHA-1, 30 seconds, as every app knows it). One step
//! before and after is taken for clocks that go wrong, and none twice.

use askama::Template;
use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use data_encoding::BASE32_NOPAD;
use qrcode::{Color, QrCode};
use totp_rs::{Builder, Secret};
use upscale_core::{NoRandomness, RecoveryCode, Timestamp, random_bytes};
use upscale_store::User;

use super::{
    error::ConsoleError,
    form::SignedForm,
    mail::{Change, tell_change},
    page::{Layout, show},
    password_again::ask_password,
    recovery::show_new_codes,
    settings::SettingsPage,
    state::ConsoleState,
};

/// Bytes of a secret (RFC 4226 section 4 recommends 160 bits).
const SECRET_BYTES: usize = 20;

#[derive(Template)]
#[template(path = "console/second_factor.html")]
struct SecondFactorPage {
    layout: Layout,
    secret: String,
    url: String,
    picture: Option<QrPicture>,
    problem: Option<String>,
}

/// A QR code as the path of an SVG, a unit a module.
struct QrPicture {
    /// Modules a side.
    side: usize,
    /// The dark ones.
    path: String,
}

impl QrPicture {
    fn of(text: &str) -> Option<Self> {
        let code = QrCode::new(text).ok()?;
        let side = code.width();
        let mut path = String::new();
        for (at, colour) in code.to_colors().into_iter().enumerate() {
            if colour == Color::Dark {
                path += &format!("M{} {}h1v1h-1z", at % side, at / side);
            }
        }
        Some(Self { side, path })
    }
}

impl SecondFactorPage {
    fn new(form: &SignedForm, secret: String) -> Self {
        let email = form.who.session.user.email.as_str();
        let label: String = url::form_urlencoded::byte_serialize(email.as_bytes()).collect();
        let url = format!("otpauth://totp/Upscale:{label}?secret={secret}&issuer=Upscale");
        Self {
            layout: Layout::new(&form.who.visitor, "/settings", "Two-factor authentication"),
            picture: QrPicture::of(&url),
            url,
            secret,
            problem: None,
        }
    }
}

/// `POST /settings/second-factor`: a new secret to put into an authenticator; nothing is changed yet.
pub(crate) async fn begin(form: SignedForm) -> Result<Response, ConsoleError> {
    form.check_verified()?;
    let page = SecondFactorPage::new(&form, new_secret()?);
    Ok(show(StatusCode::OK, &page))
}

/// `POST /settings/second-factor/on`: on, once a code shows that the authenticator has the secret.
pub(crate) async fn turn_on(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    form.check_verified()?;
    let user = &form.who.session.user;
    let secret = form.fields.get("secret").to_owned();
    let now = state.api.store.now();
    let Some(step) = step_of(&secret, form.fields.get("code"), now) else {
        let mut page = SecondFactorPage::new(&form, secret);
        page.problem =
            Some("Incorrect code. Check the time on your phone and try the next code.".to_owned());
        return Ok(show(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    state
        .api
        .store
        .users()
        .set_totp(&user.id, Some(&secret))
        .await?;
    state
        .api
        .store
        .users()
        .take_totp_step(&user.id, step)
        .await?;
    tell_change(&state, &user.email, Change::SecondFactorOn);
    show_new_codes(&state, &form.who).await
}

/// `POST /settings/second-factor/off`: with the password, so that a borrowed browser cannot.
pub(crate) async fn turn_off(
    State(state): State<ConsoleState>,
    form: SignedForm,
) -> Result<Response, ConsoleError> {
    let user = &form.who.session.user;
    let mut page = SettingsPage::new(&state, &form.who).await?;
    if let Some(refused) = ask_password(&state, &form).await? {
        page.off_problem = Some(refused.sentence.clone());
        return Ok(refused.answer(&page));
    }
    let users = state.api.store.users();
    users.set_totp(&user.id, None).await?;
    users.set_recovery_codes(&user.id, &[]).await?;
    tell_change(&state, &user.email, Change::SecondFactorOff);
    Ok(Redirect::to("/settings?done=second-factor-off").into_response())
}

/// Whether the user may come in with this code; always, when they have no second factor. A right code is used up.
pub(crate) async fn takes_code(
    state: &ConsoleState,
    user: &User,
    code: &str,
) -> Result<bool, ConsoleError> {
    let Some(secret) = state.api.store.users().open_totp(user)? else {
        return Ok(true);
    };
    match step_of(&secret, code, state.api.store.now()) {
        Some(step) => Ok(state
            .api
            .store
            .users()
            .take_totp_step(&user.id, step)
            .await?),
        None => takes_recovery_code(state, user, code).await,
    }
}

/// In place of the six digits; used up.
async fn takes_recovery_code(
    state: &ConsoleState,
    user: &User,
    code: &str,
) -> Result<bool, ConsoleError> {
    let Some(code) = RecoveryCode::parse(code) else {
        return Ok(false);
    };
    let users = state.api.store.users();
    Ok(users.take_recovery_code(&user.id, &code.hash()).await?)
}

fn new_secret() -> Result<String, NoRandomness> {
    Ok(BASE32_NOPAD.encode(&random_bytes::<SECRET_BYTES>()?))
}

/// The 30-second step that the code is of.
fn step_of(secret: &str, code: &str, now: Timestamp) -> Option<i64> {
    let digits: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let secret = Secret::try_from_base32(secret).ok()?;
    let totp = Builder::new().with_secret(secret).build().ok()?;
    let step = totp.check(&digits, u64::try_from(now.unix_seconds()).ok()?)?;
    i64::try_from(step).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6238 appendix B: the secret "12345678901234567890", last six of the eight digits.
    const RFC_SECRET: &str = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn the_picture_is_a_qr_code_with_its_three_corners() {
        let picture = QrPicture::of("otpauth://totp/Upscale:a?secret=B&issuer=Upscale").unwrap();
        assert!(picture.side >= 21 && (picture.side - 17).is_multiple_of(4));
        // A finder pattern is 7 × 7: dark corners, a light ring inside (ISO/IEC 18004 section 6.3.3).
        let far = picture.side - 7;
        for (x, y) in [(0, 0), (far, 0), (0, far)] {
            let is_dark = |x, y| picture.path.contains(&format!("M{x} {y}h"));
            assert!(is_dark(x, y) && is_dark(x + 6, y + 6) && is_dark(x + 3, y + 3));
            assert!(!is_dark(x + 1, y + 1) && !is_dark(x + 5, y + 5));
        }
        assert!(QrPicture::of(&"x".repeat(10_000)).is_none());
    }

    #[test]
    fn codes_are_those_of_the_standard_one_step_around_now() {
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_234_567_890, "005924"),
        ] {
            let step = Some(seconds / 30);
            for now in [seconds, seconds - 30, seconds + 30] {
                assert_eq!(step_of(RFC_SECRET, code, at(now)), step, "{code} at {now}");
            }
            assert_eq!(step_of(RFC_SECRET, code, at(seconds + 90)), None);
        }
        assert_eq!(step_of(RFC_SECRET, " 287 082 ", at(59)), Some(1));
        for (secret, code) in [
            (RFC_SECRET, ""),
            (RFC_SECRET, "28708"),
            (RFC_SECRET, "2870822"),
            ("", "287082"),
            ("!", "287082"),
        ] {
            assert_eq!(step_of(secret, code, at(59)), None, "{secret} {code}");
        }
        assert_eq!(new_secret().unwrap().len(), 32);
    }
}
