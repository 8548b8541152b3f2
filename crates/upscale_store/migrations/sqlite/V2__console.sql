-- The customers' console: users, their sessions and what guards them; names of keys; where a task's time went.
-- People who sign in to the console. A password is kept as an argon2id hash in its PHC string; null until its owner
-- has chosen one.
CREATE TABLE console_user (
    id             TEXT NOT NULL PRIMARY KEY,
    account_id     TEXT NOT NULL REFERENCES account (id),
    -- In lower case: one address, one user.
    email          TEXT NOT NULL UNIQUE,
    password_hash  TEXT,
    created_at     INTEGER NOT NULL,
    -- Second factor (RFC 6238), base32; null while it is off.
    totp_secret    TEXT,
    -- The last 30-second step whose code was taken: none is taken twice.
    totp_last_step INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX console_user_by_account ON console_user (account_id);

-- Only the hash of what the browser's cookie holds. A session that was ended is a row that is gone.
CREATE TABLE console_session (
    hash       TEXT NOT NULL PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES console_user (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX console_session_by_user ON console_session (user_id);

-- Links that set a new password, once; only their hash.
CREATE TABLE password_reset (
    hash       TEXT NOT NULL PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES console_user (id),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Tries to sign in, sign up or reset, counted up to their limit by address and by hash of the e-mail typed.
CREATE TABLE sign_in_attempt (
    subject    TEXT NOT NULL PRIMARY KEY,
    ends_at    INTEGER NOT NULL,
    attempts   INTEGER NOT NULL CHECK (attempts > 0)
) STRICT, WITHOUT ROWID;

-- What its owner calls the key.
ALTER TABLE api_key ADD COLUMN name TEXT NOT NULL DEFAULT '';

-- Where the time of a succeeded task went, as its last attempt measured: download, picture (the child process),
-- storing. What is left of created_at to finished_at was waiting.
ALTER TABLE task ADD COLUMN download_micros INTEGER CHECK (download_micros >= 0);
ALTER TABLE task ADD COLUMN picture_micros INTEGER CHECK (picture_micros >= 0);
ALTER TABLE task ADD COLUMN storing_micros INTEGER CHECK (storing_micros >= 0);
