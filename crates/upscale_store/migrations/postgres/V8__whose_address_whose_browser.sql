-- Keys: those of an account are counted and listed, and the revoked are forgotten after their time.
CREATE INDEX api_key_by_revocation ON api_key (revoked_at) WHERE revoked_at IS NOT NULL;

-- When a user proved that the e-mail address is theirs; null until then. Who was there before is believed.
ALTER TABLE console_user ADD COLUMN verified_at BIGINT;
UPDATE console_user SET verified_at = created_at;

-- Links that prove an address, once; only their hash.
CREATE TABLE email_verification (
    hash       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    user_id    TEXT COLLATE "C" NOT NULL REFERENCES console_user (id),
    expires_at BIGINT NOT NULL
);
CREATE INDEX email_verification_by_user ON email_verification (user_id);

-- Browsers that a user signed in with: their tries are counted apart from everybody else's. Only the cookie's hash.
CREATE TABLE known_browser (
    hash       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    user_id    TEXT COLLATE "C" NOT NULL REFERENCES console_user (id),
    expires_at BIGINT NOT NULL
);
CREATE INDEX known_browser_by_user ON known_browser (user_id);

-- The secrets that sign result URLs, and those of second factors, may be sealed with a key from outside.
ALTER TABLE signing_key DROP CONSTRAINT signing_key_secret_check;
