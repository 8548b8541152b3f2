-- Links that put another address in a user's place, once; only their hash, and the address they were mailed to.
CREATE TABLE email_change (
    hash       TEXT NOT NULL PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES console_user (id),
    -- In lower case, as of the users.
    email      TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX email_change_by_user ON email_change (user_id);
