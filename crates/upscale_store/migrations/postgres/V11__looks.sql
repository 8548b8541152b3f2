-- The look that made a result: a name of upscale_core::Look. Null where a brought model made it, and from programs of before.
ALTER TABLE task ADD COLUMN look TEXT COLLATE "C" CHECK (length(look) BETWEEN 1 AND 16);
