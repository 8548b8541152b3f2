//! The invariants that rows can show (I1–I6, I8–I13), each one query that returns what breaks it: nothing,
//! when all is well. Written in the SQL that both engines speak, so that they check the same.

use upscale_core::AccountId;

use crate::{AuditReport, Breach};

/// Breaches named per invariant; more of the same kind help no one.
const NAMED_MAX: u32 = 100;

/// Each account's balances as the ledger has them.
const BALANCES: &str = "balance AS (SELECT account.id AS account_id, account.available, account.held,
     account.charged, account.taken_back,
     coalesce(sum(CASE WHEN credit = 'available' THEN amount WHEN debit = 'available' THEN -amount END), 0) AS in_available,
     coalesce(sum(CASE WHEN credit = 'held' THEN amount WHEN debit = 'held' THEN -amount END), 0) AS in_held,
     coalesce(sum(CASE WHEN credit = 'revenue' THEN amount END), 0) AS in_revenue,
     coalesce(sum(CASE WHEN kind = 'reversal' THEN amount END), 0) AS in_reversals
     FROM account LEFT JOIN ledger ON ledger.account_id = account.id GROUP BY account.id), ";

/// Invariant, and the query that returns (account or null, detail) for every breach. Correlated counts, not
/// joins: they read the tasks in the order they lie, in half the time.
const CHECKS: [(&str, &str); 20] = [
    (
        "I1",
        "SELECT CAST(NULL AS TEXT), 'came in ' || cash || ', balances ' || balances FROM (
             SELECT (SELECT coalesce(sum(CASE WHEN debit IN ('cash', 'house') THEN amount
                 WHEN credit IN ('cash', 'house') THEN -amount END), 0)
                 FROM ledger) AS cash,
             (SELECT coalesce(sum(available + held + charged), 0) FROM account) AS balances) AS sums
         WHERE cash <> balances",
    ),
    (
        "I2",
        "SELECT account_id, 'available ' || available || ', held ' || held || ', charged ' || charged ||
             ', taken back ' || taken_back || '; the ledger has ' || in_available || ', ' || in_held || ', ' ||
             in_revenue || ', ' || in_reversals
         FROM balance WHERE available <> in_available OR held <> in_held OR charged <> in_revenue
             OR taken_back <> in_reversals",
    ),
    (
        "I3",
        "SELECT account_id, 'below zero: available ' || available || ', held ' || held || ', charged ' || charged ||
             '; the ledger has ' || in_available || ', ' || in_held || ', ' || in_revenue
         FROM balance WHERE available + taken_back < 0 OR held < 0 OR charged < 0
             OR in_available + in_reversals < 0 OR in_held < 0 OR in_revenue < 0",
    ),
    (
        "I4",
        "SELECT account.id, 'held ' || held || ', open reservations ' || open FROM account JOIN
             (SELECT account.id AS account_id, coalesce(sum(reserve.amount), 0) AS open FROM account
              LEFT JOIN ledger AS reserve ON reserve.account_id = account.id AND reserve.kind = 'reserve'
                  AND NOT EXISTS (SELECT 1 FROM ledger AS settled WHERE settled.task_id = reserve.task_id
                      AND settled.kind IN ('charge', 'refund'))
              GROUP BY account.id) AS reservation ON account_id = account.id
         WHERE held <> open",
    ),
    (
        "I5",
        "SELECT account_id, 'task ' || id || ' has ' || reserves || ' reserves of its price' FROM (
             SELECT account_id, id, (SELECT count(*) FROM ledger WHERE ledger.task_id = task.id AND kind = 'reserve'
                 AND amount = price AND ledger.account_id = task.account_id) AS reserves FROM task) AS reserved
         WHERE reserves <> 1",
    ),
    (
        "I6",
        "SELECT account_id, 'task ' || id || ' is ' || state || coalesce(' ' || refund, '') ||
             ' and the ledger has ' || coalesce(settled, 'no settlement') FROM (
             SELECT account_id, id, state, refund, (SELECT string_agg(kind, ',') FROM ledger
                 WHERE ledger.task_id = task.id AND kind IN ('charge', 'refund')) AS settled FROM task) AS ended
         WHERE coalesce(settled, '') <> CASE WHEN state = 'succeeded' THEN 'charge'
             WHEN refund = 'refunded' THEN 'refund' ELSE '' END",
    ),
    (
        "I6",
        "SELECT account_id, 'task ' || task_id || ': settled ' || settled || ' times for ' || more || ' more than reserved'
         FROM (SELECT min(account_id) AS account_id, task_id,
                 sum(CASE WHEN kind = 'reserve' THEN 0 ELSE 1 END) AS settled,
                 sum(CASE WHEN kind = 'reserve' THEN -amount ELSE amount END) AS more
             FROM ledger WHERE task_id IS NOT NULL GROUP BY task_id) AS moved
         WHERE settled > 1 OR (settled = 1 AND more <> 0)",
    ),
    (
        "I8",
        "SELECT account_id, 'task ' || id || ' is ' || state || ' and has ' || jobs || ' jobs' FROM (
             SELECT account_id, id, state, (SELECT count(*) FROM job WHERE job.task_id = task.id) AS jobs FROM task) AS owed
         WHERE CASE WHEN state = 'processing' THEN 1 ELSE 0 END <> jobs",
    ),
    (
        "I8",
        "SELECT account_id, 'a job for ' || task_id || ', which is no task of this account' FROM job
         WHERE NOT EXISTS (SELECT 1 FROM task WHERE id = job.task_id AND task.account_id = job.account_id)",
    ),
    (
        "I9",
        "SELECT min(account_id), kind || ' ' || coalesce(external_reference, 'without reference') || ' stands ' ||
             count(*) || ' times'
         FROM ledger WHERE kind IN ('purchase', 'reversal', 'reinstatement', 'adjustment')
         GROUP BY kind, external_reference HAVING count(*) > 1 OR external_reference IS NULL",
    ),
    (
        "I9",
        "SELECT account_id, 'payment ' || id || ' was credited with ' || credits || ' and the ledger has no such purchase'
         FROM payment WHERE state = 'credited' AND NOT EXISTS (SELECT 1 FROM ledger WHERE kind = 'purchase'
             AND external_reference = payment.id AND ledger.account_id = payment.account_id AND amount = credits)",
    ),
    (
        "I9",
        "SELECT account_id, 'payments tell of ' || reported || ' taken back, the ledger of ' || moved FROM (
             SELECT account.id AS account_id,
                 (SELECT coalesce(sum(taken_back), 0) FROM payment WHERE payment.account_id = account.id) AS reported,
                 (SELECT coalesce(sum(CASE WHEN kind = 'reversal' THEN amount ELSE -amount END), 0) FROM ledger
                     WHERE ledger.account_id = account.id AND kind IN ('reversal', 'reinstatement')) AS moved
             FROM account) AS returned
         WHERE reported <> moved",
    ),
    (
        "I10",
        "SELECT id, CASE WHEN activated_at IS NULL THEN 'not activated, with' ELSE 'activated, without' END ||
             ' a purchase'
         FROM account WHERE (activated_at IS NOT NULL) <>
             EXISTS (SELECT 1 FROM ledger WHERE ledger.account_id = account.id AND kind = 'purchase')",
    ),
    (
        "I11",
        "SELECT account_day.account_id, 'day ' || account_day.day || ' counts ' || accepted || ', tasks ' || count(id)
         FROM account_day LEFT JOIN task ON task.account_id = account_day.account_id AND task.day = account_day.day
         GROUP BY account_day.account_id, account_day.day HAVING accepted <> count(id)",
    ),
    (
        "I11",
        "SELECT account_id, 'day ' || day || ' is not counted, tasks ' || count(*) FROM task
         WHERE NOT EXISTS (SELECT 1 FROM account_day
             WHERE account_day.account_id = task.account_id AND account_day.day = task.day)
         GROUP BY account_id, day",
    ),
    (
        "I12",
        "SELECT account.id, 'counts ' || active_tasks || ' active, processing ' || count(task.id)
         FROM account LEFT JOIN task ON task.account_id = account.id AND state = 'processing'
         GROUP BY account.id HAVING active_tasks <> count(task.id)",
    ),
    // The database refuses other words; a damaged page or a file from elsewhere may hold them all the same.
    (
        "I13",
        "SELECT account_id, 'ledger line ' || sequence || ' is ' || kind || ': ' || debit || ' to ' || credit
         FROM ledger WHERE kind || ': ' || debit || ' to ' || credit NOT IN (
             'purchase: cash to available', 'reserve: available to held', 'charge: held to revenue',
             'refund: held to available', 'reversal: available to cash', 'reinstatement: cash to available',
             'adjustment: house to available', 'adjustment: available to house')",
    ),
    (
        "I13",
        "SELECT account_id, 'task ' || id || ' is ' || state || coalesce(' ' || refund, '') FROM task
         WHERE state || coalesce(' ' || refund, '') NOT IN
             ('processing', 'succeeded', 'failed pending', 'failed refunded')",
    ),
    (
        "I13",
        "SELECT account_id, 'key ' || id || ' may ' || permission FROM api_key
         WHERE permission NOT IN ('read', 'write', 'all')",
    ),
    (
        "I13",
        "SELECT account_id, 'payment ' || id || ' is ' || state FROM payment
         WHERE state NOT IN ('unknown', 'credited', 'refused')",
    ),
];

/// One query to run.
pub(crate) struct Check {
    pub(crate) invariant: &'static str,
    /// Its rows: the account's id or null, and what is wrong.
    pub(crate) sql: String,
}

/// All of them, in order of their invariants.
pub(crate) fn checks() -> impl Iterator<Item = Check> {
    CHECKS.into_iter().map(|(invariant, query)| {
        let is_of_balances = query.contains("FROM balance");
        let balances = if is_of_balances { BALANCES } else { "" };
        let sql = format!(
            "WITH {balances}found (account_id, detail) AS ({query}) SELECT account_id, detail FROM found
             LIMIT {NAMED_MAX}"
        );
        Check { invariant, sql }
    })
}

impl AuditReport {
    /// Records that a check was run and what it found.
    pub(crate) fn add(&mut self, invariant: &str, found: Vec<(Option<String>, String)>) {
        if self.checked.last().is_none_or(|last| last != invariant) {
            self.checked.push(invariant.to_owned());
        }
        let breach = |(account, detail): (Option<String>, String)| Breach {
            invariant: invariant.to_owned(),
            account_id: account.as_deref().and_then(AccountId::parse),
            detail,
        };
        self.breaches.extend(found.into_iter().map(breach));
    }
}
