//! What an operator changes on an account: its limits, its balance, a purchase that came another way. A form that is sent
//! twice counts once: limits because they are the same, an adjustment by its form's number, a purchase by its payment's.

use axum::{
    extract::{Path, State},
    response::{IntoResponse, Redirect, Response},
};
use upscale_core::{Credits, OwnLimits, parse_own_limit, parse_reference, parse_signed_credits};
use upscale_store::{Account, AdjustOutcome, PurchaseOutcome};

use super::{
    account::{Forms, find, show_again},
    change::{Change, Form},
    state::AdminState,
};
use crate::pages::{error::ConsoleError, form::Fields};

fn done(account: &Account, what: &str) -> Response {
    Redirect::to(&format!("/accounts/{}?done={what}", account.id)).into_response()
}

/// `POST /accounts/{id}/limits`.
pub(crate) async fn set_limits(
    State(state): State<AdminState>,
    Path(id): Path<String>,
    change: Change,
) -> Result<Response, ConsoleError> {
    let account = find(&state, &id).await?;
    let mut form = Form::of(&change.fields)?;
    let mut limit = |name: &'static str| {
        let typed = match change.fields.get(name).trim() {
            "" => "contract",
            typed => typed,
        };
        form.take(name, parse_own_limit(typed))
    };
    let limits = [limit("requests"), limit("active"), limit("daily")];
    let by = change.on_behalf(&mut form);
    let ([Some(requests), Some(active), Some(daily)], Some(by)) = (limits, by) else {
        let limits = form;
        let forms = Forms {
            limits,
            ..Forms::first(account.own_limits)?
        };
        return show_again(&state, &change.visitor, account, forms).await;
    };
    let own = OwnLimits {
        create_requests_per_minute: requests,
        active_tasks: active,
        daily_tasks: daily,
    };
    let before = account.own_limits;
    state
        .api
        .store
        .operator()
        .set_limits(&account.id, own, &by)
        .await?;
    let what = if own == before { "same" } else { "limits" };
    Ok(done(&account, what))
}

/// `POST /accounts/{id}/adjust`.
pub(crate) async fn adjust(
    State(state): State<AdminState>,
    Path(id): Path<String>,
    change: Change,
) -> Result<Response, ConsoleError> {
    let account = find(&state, &id).await?;
    let mut form = Form::of(&change.fields)?;
    let credits = change.fields.get("credits").trim().replace('−', "-");
    let credits = form.take("credits", confirmed(&change.fields, &credits));
    let by = change.on_behalf(&mut form);
    if let (Some(credits), Some(by)) = (credits, by) {
        let reference = format!("adj_{}", form.nonce);
        let store = &state.api.store;
        let adjusted = store
            .operator()
            .adjust(&account.id, credits, &reference, &by);
        match adjusted.await? {
            AdjustOutcome::Adjusted => return Ok(done(&account, "adjusted")),
            AdjustOutcome::AlreadyAdjusted => return Ok(done(&account, "before")),
            AdjustOutcome::NoSuchAccount => return Err(ConsoleError::NotFound),
            AdjustOutcome::TooLittle { available } => form.complain(
                "credits",
                &format!("{available} credits are available: {credits} cannot be taken"),
            ),
            AdjustOutcome::ReferenceTaken => {
                form = Form::of(&change.fields.without("nonce"))?;
                form.complain(
                    "credits",
                    "this form was sent before with another amount, and that one counts. Send it again to adjust by this one as well",
                );
            }
        }
    }
    let forms = Forms {
        adjust: form,
        ..Forms::first(account.own_limits)?
    };
    show_again(&state, &change.visitor, account, forms).await
}

/// The page asks again before credits are removed: a minus is typed sooner than it is meant. A script means it.
fn confirmed(fields: &Fields, credits: &str) -> Result<Credits, String> {
    let credits = parse_signed_credits(credits)?;
    let is_asked = fields.get("asks") == "yes" && fields.get("confirm") != "yes";
    if credits < Credits::ZERO && is_asked {
        return Err(format!(
            "this removes {} credits from the account: tick the box to confirm",
            Credits::from_thousandths(-credits.thousandths())
        ));
    }
    Ok(credits)
}

/// `POST /accounts/{id}/purchase`.
pub(crate) async fn book_purchase(
    State(state): State<AdminState>,
    Path(id): Path<String>,
    change: Change,
) -> Result<Response, ConsoleError> {
    let account = find(&state, &id).await?;
    let mut form = Form::of(&change.fields)?;
    let credits = form.take("credits", parse_bought(change.fields.get("credits").trim()));
    let reference = parse_reference(change.fields.get("reference").trim());
    let reference = form.take("reference", reference);
    let by = change.on_behalf(&mut form);
    if let (Some(credits), Some(reference), Some(by)) = (credits, reference, by) {
        let store = &state.api.store;
        let booked = store
            .operator()
            .book_purchase(&account.id, credits, &reference, &by);
        match booked.await? {
            PurchaseOutcome::Credited => return Ok(done(&account, "purchased")),
            PurchaseOutcome::AlreadyCredited => return Ok(done(&account, "before")),
            PurchaseOutcome::NoSuchAccount => return Err(ConsoleError::NotFound),
            PurchaseOutcome::ReferenceTaken => form.complain(
                "reference",
                "this payment was credited before, to another account or with another amount",
            ),
        }
    }
    let forms = Forms {
        purchase: form,
        ..Forms::first(account.own_limits)?
    };
    show_again(&state, &change.visitor, account, forms).await
}

fn parse_bought(text: &str) -> Result<Credits, String> {
    match Credits::parse(text) {
        Ok(Credits::ZERO) => Err("a purchase must be of more than 0 credits".to_owned()),
        Ok(credits) => Ok(credits),
        Err(error) => Err(error.to_string()),
    }
}
