-- What the store's clock said when the running service last looked, and for how long the service has still to run before
-- anything is deleted: a clock that is wrong for seconds must not delete for good. One row, from the first look on.
CREATE TABLE clock (
    id           BIGINT PRIMARY KEY CHECK (id = 1),
    seen_at      BIGINT NOT NULL,
    pause_micros BIGINT NOT NULL CHECK (pause_micros >= 0)
) WITH (fillfactor = 50);

-- When a sweep first found the result past its retention; its file is removed an hour later at the earliest. The first
-- index finds what is not noted yet, the second what is.
ALTER TABLE task ADD COLUMN result_due_at BIGINT;
DROP INDEX task_result_kept;
CREATE INDEX task_result_kept ON task (finished_at)
    WHERE state = 'succeeded' AND result_removed_at IS NULL AND result_due_at IS NULL;
CREATE INDEX task_result_due ON task (result_due_at) WHERE result_due_at IS NOT NULL AND result_removed_at IS NULL;

-- Idempotency keys outlive the records of their tasks, with what it takes to answer a replay: neither source nor
-- request, and of a failure not its reason.
CREATE TABLE used_key (
    account_id      TEXT COLLATE "C" NOT NULL REFERENCES account (id),
    idempotency_key TEXT COLLATE "C" NOT NULL,
    fingerprint     TEXT COLLATE "C" NOT NULL,
    id              TEXT COLLATE "C" NOT NULL,
    day             BIGINT NOT NULL,
    scale           BIGINT NOT NULL,
    face_enhance    BOOLEAN NOT NULL,
    price           BIGINT NOT NULL CHECK (price > 0),
    created_at      BIGINT NOT NULL,
    deadline_at     BIGINT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('succeeded', 'failed')),
    failure_message TEXT,
    refund          TEXT,
    result_name     TEXT,
    result_sha256   TEXT,
    result_size     BIGINT,
    result_width    BIGINT,
    result_height   BIGINT,
    PRIMARY KEY (account_id, idempotency_key)
);
CREATE INDEX used_key_by_day ON used_key (day);
