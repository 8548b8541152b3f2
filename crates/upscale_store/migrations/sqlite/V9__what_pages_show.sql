-- What pages show: thumbnails beside results, where to look first, which key ordered; sessions that can be told apart;
-- another way past a lost authenticator.

-- Length of the thumbnail beside the result's file; null or 0 where there is none.
ALTER TABLE task ADD COLUMN thumbnail_bytes INTEGER CHECK (thumbnail_bytes >= 0);
-- Where the result differs most from its smoothly enlarged source, in thousandths of its sides.
ALTER TABLE task ADD COLUMN focus_x INTEGER CHECK (focus_x BETWEEN 0 AND 1000);
ALTER TABLE task ADD COLUMN focus_y INTEGER CHECK (focus_y BETWEEN 0 AND 1000);
-- The key that ordered; null from the playground and from programs of before. No reference: keys are forgotten first.
ALTER TABLE task ADD COLUMN key_id TEXT;

-- The browser that signed in, in its own words, for the list of sessions.
ALTER TABLE console_session ADD COLUMN agent TEXT NOT NULL DEFAULT '';

-- Codes that stand in for the second factor, once each; only their hash.
CREATE TABLE recovery_code (
    hash    TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL REFERENCES console_user (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX recovery_code_by_user ON recovery_code (user_id);
