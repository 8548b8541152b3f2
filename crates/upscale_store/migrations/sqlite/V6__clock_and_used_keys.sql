-- What the store's clock said when the running service last looked, and for how long the service has still to run before
-- anything is deleted: a clock that is wrong for seconds must not delete for good. One row, from the first look on.
CREATE TABLE clock (
    id           INTEGER PRIMARY KEY CHECK (id = 1),
    seen_at      INTEGER NOT NULL,
    pause_micros INTEGER NOT NULL CHECK (pause_micros >= 0)
) STRICT;

-- When a sweep first found the result past its retention; its file is removed an hour later at the earliest. The first
-- index finds what is not noted yet, the second what is.
ALTER TABLE task ADD COLUMN result_due_at INTEGER;
DROP INDEX task_result_kept;
CREATE INDEX task_result_kept ON task (finished_at)
    WHERE state = 'succeeded' AND result_removed_at IS NULL AND result_due_at IS NULL;
CREATE INDEX task_result_due ON task (result_due_at) WHERE result_due_at IS NOT NULL AND result_removed_at IS NULL;

-- Idempotency keys outlive the records of their tasks, with what it takes to answer a replay: neither source nor
-- request, and of a failure not its reason.
CREATE TABLE used_key (
    account_id      TEXT NOT NULL REFERENCES account (id),
    idempotency_key TEXT NOT NULL,
    fingerprint     TEXT NOT NULL,
    id              TEXT NOT NULL,
    day             INTEGER NOT NULL,
    scale           INTEGER NOT NULL,
    face_enhance    INTEGER NOT NULL CHECK (face_enhance IN (0, 1)),
    price           INTEGER NOT NULL CHECK (price > 0),
    created_at      INTEGER NOT NULL,
    deadline_at     INTEGER NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('succeeded', 'failed')),
    failure_message TEXT,
    refund          TEXT,
    result_name     TEXT,
    result_sha256   TEXT,
    result_size     INTEGER,
    result_width    INTEGER,
    result_height   INTEGER,
    PRIMARY KEY (account_id, idempotency_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX used_key_by_day ON used_key (day);
