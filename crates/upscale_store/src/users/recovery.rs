//! Codes that stand in for a lost authenticator: only their hashes, each good once.

use upscale_core::{TokenHash, UserId};

use super::Users;
use crate::{StoreError, tx::Tx};

impl Users<'_> {
    /// Makes these the user's recovery codes, in place of those there were.
    pub async fn set_recovery_codes(
        self,
        user: &UserId,
        codes: &[TokenHash],
    ) -> Result<(), StoreError> {
        let (user, codes) = (*user, codes.to_vec());
        self.store
            .write(async move |tx: &mut Tx| {
                let old = "DELETE FROM recovery_code WHERE user_id = $1";
                tx.execute(old, &[&user]).await?;
                for code in &codes {
                    let new = "INSERT INTO recovery_code (hash, user_id) VALUES ($1, $2)";
                    tx.execute_one(new, &[code, &user]).await?;
                }
                Ok(())
            })
            .await
    }

    /// Uses a code up; whether it was one of the user's.
    pub async fn take_recovery_code(
        self,
        user: &UserId,
        code: &TokenHash,
    ) -> Result<bool, StoreError> {
        let (user, code) = (*user, code.clone());
        let taken = self.store.write(async move |tx: &mut Tx| {
            let sql = "DELETE FROM recovery_code WHERE hash = $1 AND user_id = $2";
            tx.execute(sql, &[&code, &user]).await
        });
        Ok(taken.await? > 0)
    }

    /// How many of the user's codes are left.
    pub async fn count_recovery_codes(self, user: &UserId) -> Result<u32, StoreError> {
        let user = *user;
        let counted = self.store.read(async move |tx: &mut Tx| {
            let sql = "SELECT count(*) FROM recovery_code WHERE user_id = $1";
            tx.number(sql, &[&user]).await
        });
        Ok(u32::try_from(counted.await?).unwrap_or(u32::MAX))
    }
}
