-- The tables of the SQLite engine for PostgreSQL 15 or newer: BIGINT microseconds since 1970 UTC, BIGINT
-- thousandths of a credit, TEXT ids and hashes. The numbers of the contract are not repeated here:
-- upscale_core decides, rows record. Ids are compared byte by byte ("C"), whatever the database's collation.

CREATE TABLE account (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name         TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    activated_at BIGINT,
    -- Cached sums of the ledger, so that a create reads one row; the audit compares.
    available    BIGINT NOT NULL DEFAULT 0 CHECK (available >= 0),
    held         BIGINT NOT NULL DEFAULT 0 CHECK (held >= 0),
    charged      BIGINT NOT NULL DEFAULT 0 CHECK (charged >= 0),
    active_tasks BIGINT NOT NULL DEFAULT 0 CHECK (active_tasks >= 0),
    -- Set by an audit that found this account's books wrong: no more creates until a clean one.
    stopped      BIGINT NOT NULL DEFAULT 0 CHECK (stopped IN (0, 1))
) WITH (fillfactor = 50);

-- Tasks accepted per UTC day. One row a day, not one counter that is reset: a clock that steps back over
-- midnight and forward again must not hand out a second allowance.
CREATE TABLE account_day (
    account_id TEXT COLLATE "C" NOT NULL REFERENCES account (id),
    day        BIGINT NOT NULL,
    accepted   BIGINT NOT NULL CHECK (accepted > 0),
    PRIMARY KEY (account_id, day)
) WITH (fillfactor = 50);
CREATE INDEX account_day_by_day ON account_day (day);

CREATE TABLE api_key (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id   TEXT COLLATE "C" NOT NULL REFERENCES account (id),
    hash         TEXT COLLATE "C" NOT NULL UNIQUE,
    permission   TEXT NOT NULL CHECK (permission IN ('read', 'write', 'all')),
    hint         TEXT NOT NULL,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT,
    -- From when on it is refused; in the future after a rotation with overlap.
    revoked_at   BIGINT,
    -- Revoked for good. Not derived from revoked_at: a clock that steps back must not revive a key.
    dead         BIGINT NOT NULL DEFAULT 0 CHECK (dead IN (0, 1))
) WITH (fillfactor = 70);
CREATE INDEX api_key_by_account ON api_key (account_id);

-- The durable record of a task.
CREATE TABLE task (
    id                TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account_id        TEXT COLLATE "C" NOT NULL REFERENCES account (id),
    idempotency_key   TEXT COLLATE "C" NOT NULL,
    fingerprint       TEXT COLLATE "C" NOT NULL,
    source_url        TEXT NOT NULL,
    scale             BIGINT NOT NULL CHECK (scale IN (2, 4)),
    face_enhance      BOOLEAN NOT NULL,
    price             BIGINT NOT NULL CHECK (price > 0),
    request_id        TEXT NOT NULL,
    created_at        BIGINT NOT NULL,
    day               BIGINT NOT NULL,
    deadline_at       BIGINT NOT NULL,
    state             TEXT NOT NULL DEFAULT 'processing' CHECK (state IN ('processing', 'succeeded', 'failed')),
    finished_at       BIGINT CHECK (finished_at >= created_at),
    failure_message   TEXT,
    refund            TEXT CHECK (refund IN ('pending', 'refunded')),
    result_name       TEXT COLLATE "C" UNIQUE,
    result_sha256     TEXT,
    result_size       BIGINT CHECK (result_size > 0),
    result_width      BIGINT CHECK (result_width > 0),
    result_height     BIGINT CHECK (result_height > 0),
    result_removed_at BIGINT,
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
) WITH (fillfactor = 80);
CREATE INDEX task_by_day ON task (account_id, day);
CREATE INDEX task_refund_pending ON task (id) WHERE refund = 'pending';
CREATE INDEX task_result_kept ON task (finished_at) WHERE state = 'succeeded' AND result_removed_at IS NULL;

-- A row here means that work is owed; it goes when the task ends. Every claim, heartbeat and release updates
-- it, so no index holds a column that these change: with half of each page free the new version stays on the
-- page of the old one (a HOT update) and no index grows. Vacuum comes by number of dead rows, at once and
-- unthrottled: the table is small, and every claim walks over what is dead.
CREATE TABLE job (
    task_id            TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES task (id),
    account_id         TEXT COLLATE "C" NOT NULL REFERENCES account (id),
    -- Order of arrival, where two have the same prio_at.
    sequence           BIGINT GENERATED ALWAYS AS IDENTITY,
    created_at         BIGINT NOT NULL,
    prio_at            BIGINT NOT NULL,
    -- Waiting: due from then on. Claimed: the lease ends then.
    visible_at         BIGINT NOT NULL,
    deadline_at        BIGINT NOT NULL,
    -- The fence: grows with every claim, and every word of a worker carries it.
    attempt            BIGINT NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    transient_failures BIGINT NOT NULL DEFAULT 0 CHECK (transient_failures >= 0),
    crashes            BIGINT NOT NULL DEFAULT 0 CHECK (crashes >= 0),
    -- Null while it waits.
    worker             TEXT
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);
CREATE INDEX job_by_prio ON job (prio_at, sequence);
CREATE INDEX job_by_deadline ON job (deadline_at);

-- Append-only. One row is one balanced transfer: amount leaves the purse `debit` and enters `credit`.
-- No reference to task: the ledger outlives the task records.
CREATE TABLE ledger (
    sequence           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at                 BIGINT NOT NULL,
    account_id         TEXT COLLATE "C" NOT NULL REFERENCES account (id),
    kind               TEXT NOT NULL,
    debit              TEXT NOT NULL,
    credit             TEXT NOT NULL,
    amount             BIGINT NOT NULL CHECK (amount > 0),
    task_id            TEXT COLLATE "C",
    external_reference TEXT COLLATE "C",
    CHECK (kind || ': ' || debit || ' to ' || credit IN (
        'purchase: cash to available',
        'reserve: available to held',
        'charge: held to revenue',
        'refund: held to available',
        'reversal: available to cash'
    )),
    CHECK ((kind IN ('purchase', 'reversal')) = (external_reference IS NOT NULL)),
    CHECK ((task_id IS NULL) = (external_reference IS NOT NULL))
);
CREATE UNIQUE INDEX ledger_one_reserve ON ledger (task_id) WHERE kind = 'reserve';
CREATE UNIQUE INDEX ledger_one_settlement ON ledger (task_id) WHERE kind IN ('charge', 'refund');
CREATE UNIQUE INDEX ledger_reference_once ON ledger (kind, external_reference) WHERE external_reference IS NOT NULL;
CREATE INDEX ledger_by_account ON ledger (account_id, sequence);

-- A trigger, not REVOKE: it holds for the tables' owner too, and the service may well be the owner.
CREATE FUNCTION refuse_ledger_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$;
CREATE TRIGGER ledger_is_not_changed BEFORE UPDATE ON ledger
FOR EACH ROW EXECUTE FUNCTION refuse_ledger_change();
CREATE TRIGGER ledger_is_not_deleted BEFORE DELETE ON ledger
FOR EACH ROW EXECUTE FUNCTION refuse_ledger_change();
CREATE TRIGGER ledger_is_not_emptied BEFORE TRUNCATE ON ledger
FOR EACH STATEMENT EXECUTE FUNCTION refuse_ledger_change();

-- Create requests an account sent in one window, counted up to the limit.
CREATE TABLE rate_window (
    account_id TEXT COLLATE "C" NOT NULL REFERENCES account (id),
    "window"   BIGINT NOT NULL,
    requests   BIGINT NOT NULL CHECK (requests > 0),
    PRIMARY KEY (account_id, "window")
) WITH (fillfactor = 50);
CREATE INDEX rate_window_by_window ON rate_window ("window");

CREATE TABLE worker (
    id      TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    slots   BIGINT NOT NULL CHECK (slots >= 0),
    seen_at BIGINT NOT NULL
) WITH (fillfactor = 50);

-- Moving average of what a job takes; one row once a job has ended.
CREATE TABLE pace (
    id         BIGINT PRIMARY KEY CHECK (id = 1),
    job_micros BIGINT NOT NULL CHECK (job_micros >= 0)
) WITH (fillfactor = 10);

-- Keys that sign result URLs, 32 bytes in hex.
CREATE TABLE signing_key (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    secret     TEXT NOT NULL CHECK (length(secret) = 64),
    created_at BIGINT NOT NULL
);

-- Written by the readiness check: proof that a commit works now.
CREATE TABLE probe (
    id         BIGINT PRIMARY KEY CHECK (id = 1),
    checked_at BIGINT NOT NULL
) WITH (fillfactor = 10);
