//! Idempotency keys whose task records are forgotten. A key outlives its record, with as little of the task as it takes to
//! answer with it: anyone who sends it again is not charged again.

use upscale_core::{AccountId, IdempotencyKey, Task};

use super::row::{TASK, task};
use crate::{StoreError, param::Params, row::Row, tx::Tx};

/// In place of the message of a failed task, which may name a customer's host.
const FORGOTTEN_MESSAGE: &str = "The reason is no longer kept. No credits were charged.";

/// What the key named before, with that order's fingerprint, whether or not its record is still kept.
pub(super) async fn find_by_key(
    tx: &Tx,
    account: &AccountId,
    key: &IdempotencyKey,
) -> Result<Option<(String, Task)>, StoreError> {
    let parse = |row: &dyn Row| Ok((row.string("fingerprint")?, task(row)?));
    let key = key.as_str();
    let of_account: Params<'_> = &[account, &key];
    let kept = format!("SELECT {TASK} FROM task WHERE account_id = $1 AND idempotency_key = $2");
    // No preview outlives its record.
    let used = "SELECT id, account_id, fingerprint, scale, face_enhance, price, created_at, deadline_at, state,
             failure_message, refund, result_name, result_sha256, result_size, result_width, result_height,
             CAST(NULL AS BIGINT) AS focus_x, CAST(NULL AS TEXT) AS look
         FROM used_key WHERE account_id = $1 AND idempotency_key = $2";
    let (kept, used) = futures_util::try_join!(
        tx.find(&kept, of_account, parse),
        tx.find(used, of_account, parse)
    )?;
    Ok(kept.or(used))
}

/// Keeps the keys of the account's tasks of this day, which are about to be forgotten.
pub(crate) async fn keep_keys_of_day(tx: &Tx, account: &str, day: i64) -> Result<(), StoreError> {
    let sql = "INSERT INTO used_key (account_id, idempotency_key, fingerprint, id, day, scale, face_enhance, price,
             created_at, deadline_at, state, failure_message, refund, result_name, result_sha256, result_size,
             result_width, result_height)
         SELECT account_id, idempotency_key, fingerprint, id, day, scale, face_enhance, price,
             created_at, deadline_at, state, CASE WHEN failure_message IS NULL THEN NULL ELSE $3 END, refund,
             result_name, result_sha256, result_size, result_width, result_height
         FROM task WHERE account_id = $1 AND day = $2";
    tx.execute(sql, &[&account, &day, &FORGOTTEN_MESSAGE])
        .await
        .map(drop)
}

/// Forgets so many keys of days before this one; how many there were.
pub(crate) async fn forget_keys_before(tx: &Tx, day: i64, at_most: u32) -> Result<u64, StoreError> {
    let sql = "DELETE FROM used_key WHERE (account_id, idempotency_key) IN
         (SELECT account_id, idempotency_key FROM used_key WHERE day < $1 LIMIT $2)";
    tx.execute(sql, &[&day, &at_most]).await
}
