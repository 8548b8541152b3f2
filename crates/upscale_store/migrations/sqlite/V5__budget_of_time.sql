-- When the transient failures of a job began: it is tried again for a time, not a number of times.
ALTER TABLE job ADD COLUMN failing_since INTEGER;
