-- Operators act from their console too: three more things that leave a line of who and why.
ALTER TABLE operator_action DROP CONSTRAINT operator_action_action_check;
ALTER TABLE operator_action ADD CONSTRAINT operator_action_action_check
    CHECK (action IN ('adjust', 'limits', 'refund', 'credit', 'revoke', 'reset'));
