-- What operators and payments do to money: limits of their own for some accounts, adjustments with a reason,
-- purchases through Stripe, and what Stripe gives back to payers.

-- Limits in place of the contract's, for accounts an operator chose; null is the contract's.
ALTER TABLE account ADD COLUMN limit_create_requests INTEGER CHECK (limit_create_requests > 0);
ALTER TABLE account ADD COLUMN limit_active_tasks INTEGER CHECK (limit_active_tasks > 0);
ALTER TABLE account ADD COLUMN limit_daily_tasks INTEGER CHECK (limit_daily_tasks > 0);

-- All that reversals ever took back. A payer gets his money back whether or not the credits are spent, so what is
-- available may fall below zero, by this much and no more.
ALTER TABLE account ADD COLUMN taken_back INTEGER NOT NULL DEFAULT 0 CHECK (taken_back >= 0);
-- A column's check goes with its column only.
ALTER TABLE account ADD COLUMN balance INTEGER NOT NULL DEFAULT 0 CHECK (balance + taken_back >= 0);
UPDATE account SET balance = available;
ALTER TABLE account DROP COLUMN available;
ALTER TABLE account RENAME COLUMN balance TO available;

-- The ledger with three more ways to move: an adjustment by an operator, up or down, against the house; and a
-- reinstatement, when a dispute is won and its money comes back. A table's check goes with its table only.
CREATE TABLE ledger_with_adjustments (
    sequence           INTEGER PRIMARY KEY AUTOINCREMENT,
    at                 INTEGER NOT NULL,
    account_id         TEXT NOT NULL REFERENCES account (id),
    kind               TEXT NOT NULL,
    debit              TEXT NOT NULL,
    credit             TEXT NOT NULL,
    amount             INTEGER NOT NULL CHECK (amount > 0),
    task_id            TEXT,
    external_reference TEXT,
    CHECK (kind || ': ' || debit || ' to ' || credit IN (
        'purchase: cash to available',
        'reserve: available to held',
        'charge: held to revenue',
        'refund: held to available',
        'reversal: available to cash',
        'reinstatement: cash to available',
        'adjustment: house to available',
        'adjustment: available to house'
    )),
    CHECK ((kind IN ('purchase', 'reversal', 'reinstatement', 'adjustment')) = (external_reference IS NOT NULL)),
    CHECK ((task_id IS NULL) = (external_reference IS NOT NULL))
) STRICT;
INSERT INTO ledger_with_adjustments SELECT * FROM ledger;
DROP TABLE ledger;
ALTER TABLE ledger_with_adjustments RENAME TO ledger;
CREATE UNIQUE INDEX ledger_one_reserve ON ledger (task_id) WHERE kind = 'reserve';
CREATE UNIQUE INDEX ledger_one_settlement ON ledger (task_id) WHERE kind IN ('charge', 'refund');
CREATE UNIQUE INDEX ledger_reference_once ON ledger (kind, external_reference) WHERE external_reference IS NOT NULL;
CREATE INDEX ledger_by_account ON ledger (account_id, sequence);
CREATE TRIGGER ledger_is_not_changed BEFORE UPDATE ON ledger
BEGIN SELECT RAISE (ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_is_not_deleted BEFORE DELETE ON ledger
BEGIN SELECT RAISE (ABORT, 'the ledger is append-only'); END;

-- What an operator did to an account, who and why. Append-only.
CREATE TABLE operator_action (
    sequence   INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    account_id TEXT NOT NULL REFERENCES account (id),
    operator   TEXT NOT NULL,
    action     TEXT NOT NULL CHECK (action IN ('adjust', 'limits', 'refund')),
    detail     TEXT NOT NULL,
    reason     TEXT NOT NULL CHECK (reason <> '')
) STRICT;
CREATE INDEX operator_action_by_account ON operator_action (account_id, sequence);
CREATE TRIGGER operator_action_is_not_changed BEFORE UPDATE ON operator_action
BEGIN SELECT RAISE (ABORT, 'actions of operators are append-only'); END;
CREATE TRIGGER operator_action_is_not_deleted BEFORE DELETE ON operator_action
BEGIN SELECT RAISE (ABORT, 'actions of operators are append-only'); END;

-- Who answers a customer's question has a request id from him.
CREATE INDEX task_by_request ON task (request_id);

-- An order of credits at the price of its moment, written before Stripe hears of it: what a payment is compared with.
CREATE TABLE checkout (
    id         TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES account (id),
    package    TEXT NOT NULL,
    credits    INTEGER NOT NULL CHECK (credits > 0),
    -- In the currency's smallest unit.
    price      INTEGER NOT NULL CHECK (price > 0),
    currency   TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX checkout_by_account ON checkout (account_id, created_at);

-- A payment as Stripe tells of it, by its own id (pi_…). Its money may be reported back before it is reported paid.
CREATE TABLE payment (
    id          TEXT NOT NULL PRIMARY KEY,
    state       TEXT NOT NULL CHECK (state IN ('unknown', 'credited', 'refused')),
    first_at    INTEGER NOT NULL,
    account_id  TEXT REFERENCES account (id),
    checkout_id TEXT REFERENCES checkout (id),
    price       INTEGER,
    currency    TEXT,
    credits     INTEGER CHECK (credits > 0),
    invoice     TEXT,
    refusal     TEXT,
    -- Of the price, as its charge last said.
    returned    INTEGER NOT NULL DEFAULT 0 CHECK (returned >= 0),
    -- Of the credits, net of what was reinstated.
    taken_back  INTEGER NOT NULL DEFAULT 0 CHECK (taken_back >= 0 AND (taken_back = 0 OR taken_back <= credits)),
    CHECK ((state = 'credited') = (credits IS NOT NULL)),
    CHECK ((state = 'refused') = (refusal IS NOT NULL)),
    CHECK (state <> 'credited' OR (account_id IS NOT NULL AND price > 0))
) STRICT;
CREATE INDEX payment_by_account ON payment (account_id, first_at);
CREATE INDEX payment_by_time ON payment (first_at);
CREATE INDEX payment_refused ON payment (first_at) WHERE state = 'refused';
CREATE UNIQUE INDEX payment_one_a_checkout ON payment (checkout_id) WHERE state = 'credited';

-- Each refund (re_…) and each dispute (dp_…) of a payment. Its end may be reported before its beginning.
CREATE TABLE payment_return (
    id         TEXT NOT NULL PRIMARY KEY,
    payment_id TEXT NOT NULL REFERENCES payment (id),
    kind       TEXT NOT NULL CHECK (kind IN ('refund', 'dispute')),
    amount     INTEGER NOT NULL CHECK (amount >= 0),
    begun      INTEGER NOT NULL CHECK (begun IN (0, 1)),
    -- A refund that failed, a dispute that was won.
    undone     INTEGER NOT NULL CHECK (undone IN (0, 1))
) STRICT;
CREATE INDEX payment_return_by_payment ON payment_return (payment_id);

-- Every event that was signed and taken note of: one that comes again changes nothing.
CREATE TABLE payment_event (
    id          TEXT NOT NULL PRIMARY KEY,
    kind        TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    payment_id  TEXT,
    outcome     TEXT NOT NULL
) STRICT;
CREATE INDEX payment_event_by_time ON payment_event (received_at);
