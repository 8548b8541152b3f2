-- Attempts that ended with their process or their lease. They are not held against the image, as crashes of its own child are.
ALTER TABLE job ADD COLUMN interruptions INTEGER NOT NULL DEFAULT 0 CHECK (interruptions >= 0);
