//! One row of each kind as the file of an account's data has it: the contract's words where it has some.

use serde_json::{Map, Value, json};
use upscale_core::{Credits, RefundStatus, TaskState, Timestamp};
use upscale_store::{
    Account, KeyRecord, LedgerLine, PaymentRecord, PaymentState, SessionRecord, TaskRecord, User,
};

use super::shown::Moment;
use crate::pages::rows::change_of_available;

/// RFC 3339.
pub(super) fn time(at: Timestamp) -> String {
    Moment::of(at).machine
}

/// A thousandth is the smallest; up to 2⁵³ of them the text is exact.
fn number(credits: Credits) -> f64 {
    credits.thousandths() as f64 / 1_000.0
}

pub(super) fn account(account: &Account) -> Value {
    json!({
        "id": account.id.to_string(), "name": account.name, "created_at": time(account.created_at),
        "activated_at": account.activated_at.map(time), "credits_available": number(account.available),
        "credits_reserved": number(account.reserved), "credits_charged": number(account.charged),
    })
}

/// Neither the password's hash nor the second factor's secret: they open what this file only describes.
pub(super) fn user(user: &User) -> Value {
    json!({
        "id": user.id.to_string(), "email": user.email.to_string(), "created_at": time(user.created_at),
        "email_confirmed_at": user.verified_at.map(time), "has_second_factor": user.totp_secret.is_some(),
    })
}

pub(super) fn session(session: &SessionRecord) -> Value {
    json!({
        "browser": session.agent, "signed_in_at": time(session.created_at), "ends_at": time(session.expires_at),
    })
}

pub(super) fn key(key: &KeyRecord) -> Value {
    json!({
        "id": key.id.to_string(), "name": key.name, "permission": key.permission.as_str(), "ends_in": key.hint,
        "created_at": time(key.created_at), "last_used_at": key.last_used_at.map(time),
        "revoked_at": key.revoked_at.map(time),
    })
}

pub(super) fn task(record: &TaskRecord) -> Value {
    let task = &record.task;
    let mut row = Map::new();
    for (name, json) in task.parameters.fields() {
        row.insert(
            name.to_owned(),
            serde_json::from_str(&json).unwrap_or_default(),
        );
    }
    let common = json!({
        "id": task.id.to_string(), "image_url": record.source_url.as_str(), "request_id": record.request_id,
        "price": number(task.price), "created_at": time(task.created_at), "finished_at": record.finished_at.map(time),
    });
    let ended = match &task.state {
        TaskState::Processing => json!({ "status": "processing" }),
        TaskState::Succeeded(file) => json!({
            "status": "succeeded", "result_removed": record.result_removed,
            "result": {
                "sha256": file.sha256, "size_bytes": file.size_bytes, "width": file.width, "height": file.height,
            },
        }),
        TaskState::Failed { message, refund } => json!({
            "status": "failed", "message": message.as_str(),
            "refund_status": match refund { RefundStatus::Pending => "pending", RefundStatus::Refunded => "refunded" },
        }),
    };
    for part in [common, ended] {
        row.extend(part.as_object().cloned().unwrap_or_default());
    }
    Value::Object(row)
}

pub(super) fn ledger_line(line: &LedgerLine) -> Value {
    json!({
        "line": line.sequence, "at": time(line.at), "kind": line.kind.to_string(), "credits": number(line.amount),
        "change_of_available": change_of_available(line) as f64 / 1_000.0,
        "task": line.task_id.map(|id| id.to_string()), "reference": line.external_reference,
    })
}

/// Why a payment was refused may name another account, so the operator alone reads it.
pub(super) fn payment(record: &PaymentRecord) -> Value {
    let state = match record.state {
        PaymentState::Unknown => "pending",
        PaymentState::Refused(_) => "not credited",
        PaymentState::Credited => "credited",
    };
    let price = record.price.as_ref();
    json!({
        "id": record.id, "at": time(record.first_at), "state": state, "package": record.package,
        "price": price.map(|(price, currency)| currency.show(*price)),
        "credits": record.credits.map(number), "credits_taken_back": number(record.taken_back),
        "in_dispute": record.in_dispute, "invoice": record.invoice,
    })
}
