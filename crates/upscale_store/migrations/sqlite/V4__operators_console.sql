-- Operators act from their console too: three more things that leave a line of who and why. A column's check goes with
-- its table only.
CREATE TABLE operator_action_of_consoles (
    sequence   INTEGER PRIMARY KEY AUTOINCREMENT,
    at         INTEGER NOT NULL,
    account_id TEXT NOT NULL REFERENCES account (id),
    operator   TEXT NOT NULL,
    action     TEXT NOT NULL CHECK (action IN ('adjust', 'limits', 'refund', 'credit', 'revoke', 'reset')),
    detail     TEXT NOT NULL,
    reason     TEXT NOT NULL CHECK (reason <> '')
) STRICT;
INSERT INTO operator_action_of_consoles SELECT * FROM operator_action;
DROP TABLE operator_action;
ALTER TABLE operator_action_of_consoles RENAME TO operator_action;
CREATE INDEX operator_action_by_account ON operator_action (account_id, sequence);
CREATE TRIGGER operator_action_is_not_changed BEFORE UPDATE ON operator_action
BEGIN SELECT RAISE (ABORT, 'actions of operators are append-only'); END;
CREATE TRIGGER operator_action_is_not_deleted BEFORE DELETE ON operator_action
BEGIN SELECT RAISE (ABORT, 'actions of operators are append-only'); END;
