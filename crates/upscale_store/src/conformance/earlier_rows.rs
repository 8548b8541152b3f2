//! What programs of every schema wrote, in their own columns: tasks in every state, money of every kind, users and what is
//! theirs. Rows of a schema are written on top of those of the schemas before it.

/// Schema, and the rows that a program of it adds. At noon of [`super::setting::NOON`].
pub(crate) const EARLIER_ROWS: [(i32, &str); 10] = [
    (1, TASKS_AND_LEDGER),
    (2, USERS),
    (3, PAYMENTS),
    (
        4,
        "INSERT INTO operator_action (at, account_id, operator, action, detail, reason) VALUES
             (1767268800000003, 'acc_00000000000000000000000001', 'Ann', 'revoke', 'a key', 'it was lost')",
    ),
    (
        5,
        "UPDATE job SET failing_since = 1767268790000000 WHERE transient_failures > 0",
    ),
    (6, CLOCK_AND_USED_KEYS),
    (7, "UPDATE job SET interruptions = 1 WHERE worker IS NOT NULL"),
    (
        8,
        "INSERT INTO email_verification (hash, user_id, expires_at) VALUES ('verify', 'usr_00000000000000000000000001', 1767272400000000);
         INSERT INTO known_browser (hash, user_id, expires_at) VALUES ('browser', 'usr_00000000000000000000000001', 1769860800000000)",
    ),
    (
        9,
        "UPDATE task SET thumbnail_bytes = 70, focus_x = 300, focus_y = 1000, key_id = 'key_00000000000000000000000001'
             WHERE result_name = '00000000000000000000000004';
         INSERT INTO recovery_code (hash, user_id) VALUES ('code', 'usr_00000000000000000000000001')",
    ),
    (
        10,
        "INSERT INTO email_change (hash, user_id, email, expires_at) VALUES
             ('change', 'usr_00000000000000000000000001', 'anna@example.org', 1767272400000000)",
    ),
];

/// Seven tasks of one account: waiting, claimed, put off, succeeded, succeeded with its file removed, failed and refunded,
/// failed and not refunded yet. `$FINGERPRINT` is that of their order.
const TASKS_AND_LEDGER: &str = "
INSERT INTO account (id, name, created_at, activated_at, available, held, charged, active_tasks) VALUES
    ('acc_00000000000000000000000001', 'A customer', 1767200000000000, 1767200000000001, 5800, 2800, 1400, 3),
    ('acc_00000000000000000000000002', 'A visitor', 1767200000000000, NULL, 0, 0, 0, 0);
INSERT INTO api_key (id, account_id, hash, permission, hint, created_at, last_used_at, revoked_at, dead) VALUES
    ('key_00000000000000000000000001', 'acc_00000000000000000000000001', 'live', 'all', 'abcd', 1767200000000002, 1767268700000000, NULL, 0),
    ('key_00000000000000000000000002', 'acc_00000000000000000000000001', 'dead', 'read', 'efgh', 1767200000000002, NULL, 1767268700000000, 1);
INSERT INTO account_day (account_id, day, accepted) VALUES ('acc_00000000000000000000000001', 20454, 7);
INSERT INTO rate_window (account_id, \"window\", requests) VALUES ('acc_00000000000000000000000001', 29454480, 7);
INSERT INTO worker (id, slots, seen_at) VALUES ('old', 4, 1767268799000000);
INSERT INTO pace (id, job_micros) VALUES (1, 3000000);
INSERT INTO probe (id, checked_at) VALUES (1, 1767268799000000);
INSERT INTO signing_key (id, secret, created_at) VALUES
    ('k1', '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef', 1767200000000000);
INSERT INTO task (id, account_id, idempotency_key, fingerprint, source_url, scale, face_enhance, price, request_id,
    created_at, day, deadline_at, state, finished_at, failure_message, refund, result_name, result_sha256, result_size,
    result_width, result_height, result_removed_at)
SELECT 'ups_0000000000000000000000000' || number, 'acc_00000000000000000000000001', 'number-' || number, '$FINGERPRINT',
    'https://pictures.example.org/a.png', 2, FALSE, 700, 'req_00000000000000000000000001', 1767268790000000, 20454,
    1767269060000000, state, CASE WHEN state = 'processing' THEN NULL ELSE 1767268795000000 END,
    CASE WHEN state = 'failed' THEN 'The image URL returned 404. No credits were charged.' END, refund,
    CASE WHEN state = 'succeeded' THEN '0000000000000000000000000' || number END,
    CASE WHEN state = 'succeeded' THEN 'a hash' END, CASE WHEN state = 'succeeded' THEN 5 END,
    CASE WHEN state = 'succeeded' THEN 8 END, CASE WHEN state = 'succeeded' THEN 6 END,
    CASE WHEN number = '5' THEN 1767268799000000 END
FROM (SELECT '1' AS number, 'processing' AS state, NULL AS refund UNION ALL SELECT '2', 'processing', NULL
    UNION ALL SELECT '3', 'processing', NULL UNION ALL SELECT '4', 'succeeded', NULL
    UNION ALL SELECT '5', 'succeeded', NULL UNION ALL SELECT '6', 'failed', 'refunded'
    UNION ALL SELECT '7', 'failed', 'pending') AS kinds;
INSERT INTO job (task_id, account_id, created_at, prio_at, visible_at, deadline_at, attempt, transient_failures, crashes, worker) VALUES
    ('ups_00000000000000000000000001', 'acc_00000000000000000000000001', 1767268790000000, 1767268790000000, 1767268790000000, 1767269060000000, 0, 0, 0, NULL),
    ('ups_00000000000000000000000002', 'acc_00000000000000000000000001', 1767268790000000, 1767268790000000, 1767268850000000, 1767269060000000, 1, 0, 0, 'old'),
    ('ups_00000000000000000000000003', 'acc_00000000000000000000000001', 1767268790000000, 1767268790000000, 1767268810000000, 1767269060000000, 1, 1, 0, NULL);
INSERT INTO ledger (at, account_id, kind, debit, credit, amount, task_id, external_reference)
    VALUES (1767200000000001, 'acc_00000000000000000000000001', 'purchase', 'cash', 'available', 10000, NULL, 'invoice-1');
INSERT INTO ledger (at, account_id, kind, debit, credit, amount, task_id)
    SELECT created_at, account_id, 'reserve', 'available', 'held', 700, id FROM task ORDER BY id;
INSERT INTO ledger (at, account_id, kind, debit, credit, amount, task_id)
    SELECT finished_at, account_id, 'charge', 'held', 'revenue', 700, id FROM task WHERE state = 'succeeded' ORDER BY id;
INSERT INTO ledger (at, account_id, kind, debit, credit, amount, task_id)
    SELECT finished_at, account_id, 'refund', 'held', 'available', 700, id FROM task WHERE refund = 'refunded' ORDER BY id";

const USERS: &str = "
INSERT INTO console_user (id, account_id, email, password_hash, created_at, totp_secret, totp_last_step) VALUES
    ('usr_00000000000000000000000001', 'acc_00000000000000000000000001', 'ann@example.org', 'hash', 1767200000000000, 'GEZDGNBVGY3TQOJQ', 7),
    ('usr_00000000000000000000000002', 'acc_00000000000000000000000002', 'bob@example.org', NULL, 1767200000000000, NULL, 0);
INSERT INTO console_session (hash, user_id, created_at, expires_at) VALUES
    ('session', 'usr_00000000000000000000000001', 1767268000000000, 1767872800000000);
INSERT INTO password_reset (hash, user_id, expires_at) VALUES ('reset', 'usr_00000000000000000000000002', 1767355200000000);
INSERT INTO sign_in_attempt (subject, ends_at, attempts) VALUES ('203.0.113.7', 1767269700000000, 3);
UPDATE api_key SET name = 'shop <backend>' WHERE dead = 0;
UPDATE task SET download_micros = 7, picture_micros = 8, storing_micros = 9 WHERE state = 'succeeded'";

/// A payment of which half was returned, and an adjustment.
const PAYMENTS: &str = "
UPDATE account SET limit_active_tasks = 30, available = available + 3600, taken_back = 3500
    WHERE id = 'acc_00000000000000000000000001';
INSERT INTO checkout (id, account_id, package, credits, price, currency, created_at) VALUES
    ('chk_00000000000000000000000001', 'acc_00000000000000000000000001', 'starter', 7000, 590, 'eur', 1767200000000000);
INSERT INTO payment (id, state, first_at, account_id, checkout_id, price, currency, credits, returned, taken_back) VALUES
    ('pi_1', 'credited', 1767268800000000, 'acc_00000000000000000000000001', 'chk_00000000000000000000000001', 590, 'eur', 7000, 295, 3500);
INSERT INTO payment (id, state, first_at, refusal) VALUES ('pi_2', 'refused', 1767268800000000, 'another price');
INSERT INTO payment_return (id, payment_id, kind, amount, begun, undone) VALUES ('re_1', 'pi_1', 'refund', 295, 1, 0);
INSERT INTO payment_event (id, kind, received_at, payment_id, outcome) VALUES
    ('evt_1', 'charge.refunded', 1767268800000001, 'pi_1', 'taken back');
INSERT INTO ledger (at, account_id, kind, debit, credit, amount, external_reference) VALUES
    (1767268800000000, 'acc_00000000000000000000000001', 'purchase', 'cash', 'available', 7000, 'pi_1'),
    (1767268800000001, 'acc_00000000000000000000000001', 'reversal', 'available', 'cash', 3500, 'evt_1'),
    (1767268800000002, 'acc_00000000000000000000000001', 'adjustment', 'house', 'available', 100, 'adj_1');
INSERT INTO operator_action (at, account_id, operator, action, detail, reason) VALUES
    (1767268800000002, 'acc_00000000000000000000000001', 'Ann', 'adjust', '0.1 credits', 'a gift')";

const CLOCK_AND_USED_KEYS: &str = "
INSERT INTO clock (id, seen_at, pause_micros) VALUES (1, 1767268799000000, 0);
UPDATE task SET result_due_at = 1767268798000000 WHERE result_removed_at IS NOT NULL;
INSERT INTO used_key (account_id, idempotency_key, fingerprint, id, day, scale, face_enhance, price, created_at,
    deadline_at, state, failure_message, refund) VALUES ('acc_00000000000000000000000001', '-used-up-', '$FINGERPRINT',
    'ups_00000000000000000000000009', 20400, 2, FALSE, 700, 1762600000000000, 1762600270000000, 'failed', 'Forgotten.', 'refunded')";
