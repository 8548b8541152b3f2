-- Times are INTEGER microseconds since 1970 UTC, credits INTEGER thousandths, ids and hashes TEXT.
-- The numbers of the contract (20, 2,500, 60, 0.7) are not repeated here: upscale_core decides, rows record.

CREATE TABLE account (
    id           TEXT NOT NULL PRIMARY KEY,
    name         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    activated_at INTEGER,
    -- Cached sums of the ledger, so that a create reads one row; the audit compares.
    available    INTEGER NOT NULL DEFAULT 0 CHECK (available >= 0),
    held         INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),
    charged      INTEGER NOT NULL DEFAULT 0 CHECK (charged >= 0),
    active_tasks INTEGER NOT NULL DEFAULT 0 CHECK (active_tasks >= 0),
    -- Set by an audit that found this account's books wrong: no more creates until a clean one.
    stopped      INTEGER NOT NULL DEFAULT 0 CHECK (stopped IN (0, 1))
) STRICT;

-- Tasks accepted per UTC day. One row a day, not one counter that is reset: a clock that steps back over
-- midnight and forward again must not hand out a second allowance.
CREATE TABLE account_day (
    account_id TEXT NOT NULL REFERENCES account (id),
    day        INTEGER NOT NULL,
    accepted   INTEGER NOT NULL CHECK (accepted > 0),
    PRIMARY KEY (account_id, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX account_day_by_day ON account_day (day);

CREATE TABLE api_key (
    id           TEXT NOT NULL PRIMARY KEY,
    account_id   TEXT NOT NULL REFERENCES account (id),
    hash         TEXT NOT NULL UNIQUE,
    permission   TEXT NOT NULL CHECK (permission IN ('read', 'write', 'all')),
    hint         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER,
    -- From when on it is refused; in the future after a rotation with overlap.
    revoked_at   INTEGER,
    -- Revoked for good. Not derived from revoked_at: a clock that steps back must not revive a key.
    dead         INTEGER NOT NULL DEFAULT 0 CHECK (dead IN (0, 1))
) STRICT;
CREATE INDEX api_key_by_account ON api_key (account_id);

-- The durable record of a task.
CREATE TABLE task (
    id                TEXT NOT NULL PRIMARY KEY,
    account_id        TEXT NOT NULL REFERENCES account (id),
    idempotency_key   TEXT NOT NULL,
    fingerprint       TEXT NOT NULL,
    source_url        TEXT NOT NULL,
    scale             INTEGER NOT NULL CHECK (scale IN (2, 4)),
    face_enhance      INTEGER NOT NULL CHECK (face_enhance IN (0, 1)),
    price             INTEGER NOT NULL CHECK (price > 0),
    request_id        TEXT NOT NULL,
    created_at        INTEGER NOT NULL,
    day               INTEGER NOT NULL,
    deadline_at       INTEGER NOT NULL,
    state             TEXT NOT NULL DEFAULT 'processing' CHECK (state IN ('processing', 'succeeded', 'failed')),
    finished_at       INTEGER CHECK (finished_at >= created_at),
    failure_message   TEXT,
    refund            TEXT CHECK (refund IN ('pending', 'refunded')),
    result_name       TEXT UNIQUE,
    result_sha256     TEXT,
    result_size       INTEGER CHECK (result_size > 0),
    result_width      INTEGER CHECK (result_width > 0),
    result_height     INTEGER CHECK (result_height > 0),
    result_removed_at INTEGER,
    UNIQUE (account_id, idempotency_key),
    CHECK ((state = 'processing') = (finished_at IS NULL)),
    CHECK ((state = 'failed') = (failure_message IS NOT NULL)),
    CHECK ((state = 'failed') = (refund IS NOT NULL)),
    CHECK ((state = 'succeeded') = (result_name IS NOT NULL)),
    CHECK ((result_name IS NULL) = (result_sha256 IS NULL)),
    CHECK ((result_name IS NULL) = (result_size IS NULL)),
    CHECK ((result_name IS NULL) = (result_width IS NULL)),
    CHECK ((result_name IS NULL) = (result_height IS NULL)),
    CHECK (result_removed_at IS NULL OR result_name IS NOT NULL)
) STRICT;
CREATE INDEX task_by_day ON task (account_id, day);
CREATE INDEX task_refund_pending ON task (id) WHERE refund = 'pending';
CREATE INDEX task_result_kept ON task (finished_at) WHERE state = 'succeeded' AND result_removed_at IS NULL;

-- A row here means that work is owed; it goes when the task ends.
CREATE TABLE job (
    task_id            TEXT NOT NULL PRIMARY KEY REFERENCES task (id),
    account_id         TEXT NOT NULL REFERENCES account (id),
    created_at         INTEGER NOT NULL,
    prio_at            INTEGER NOT NULL,
    -- Waiting: due from then on. Claimed: the lease ends then.
    visible_at         INTEGER NOT NULL,
    deadline_at        INTEGER NOT NULL,
    -- The fence: grows with every claim, and every word of a worker carries it.
    attempt            INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    transient_failures INTEGER NOT NULL DEFAULT 0 CHECK (transient_failures >= 0),
    crashes            INTEGER NOT NULL DEFAULT 0 CHECK (crashes >= 0),
    -- Null while it waits.
    worker             TEXT
) STRICT;
CREATE INDEX job_by_prio ON job (prio_at);
CREATE INDEX job_by_deadline ON job (deadline_at);

-- Append-only. One row is one balanced transfer: amount leaves the purse `debit` and enters `credit`.
-- No reference to task: the ledger outlives the task records.
CREATE TABLE ledger (
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
        'reversal: available to cash'
    )),
    CHECK ((kind IN ('purchase', 'reversal')) = (external_reference IS NOT NULL)),
    CHECK ((task_id IS NULL) = (external_reference IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX ledger_one_reserve ON ledger (task_id) WHERE kind = 'reserve';
CREATE UNIQUE INDEX ledger_one_settlement ON ledger (task_id) WHERE kind IN ('charge', 'refund');
CREATE UNIQUE INDEX ledger_reference_once ON ledger (kind, external_reference) WHERE external_reference IS NOT NULL;
CREATE INDEX ledger_by_account ON ledger (account_id, sequence);

CREATE TRIGGER ledger_is_not_changed BEFORE UPDATE ON ledger
BEGIN SELECT RAISE (ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_is_not_deleted BEFORE DELETE ON ledger
BEGIN SELECT RAISE (ABORT, 'the ledger is append-only'); END;

-- Create requests an account sent in one window, counted up to the limit.
CREATE TABLE rate_window (
    account_id TEXT NOT NULL REFERENCES account (id),
    window     INTEGER NOT NULL,
    requests   INTEGER NOT NULL CHECK (requests > 0),
    PRIMARY KEY (account_id, window)
) STRICT, WITHOUT ROWID;
CREATE INDEX rate_window_by_window ON rate_window (window);

CREATE TABLE worker (
    id      TEXT NOT NULL PRIMARY KEY,
    slots   INTEGER NOT NULL CHECK (slots >= 0),
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Moving average of what a job takes; one row once a job has ended.
CREATE TABLE pace (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    job_micros INTEGER NOT NULL CHECK (job_micros >= 0)
) STRICT;

-- Keys that sign result URLs, 32 bytes in hex.
CREATE TABLE signing_key (
    id         TEXT NOT NULL PRIMARY KEY,
    secret     TEXT NOT NULL CHECK (length(secret) = 64),
    created_at INTEGER NOT NULL
) STRICT;

-- Written by the readiness check: proof that a commit works now.
CREATE TABLE probe (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    checked_at INTEGER NOT NULL
) STRICT;
