//! Secrets in the database: sealed as soon as there is a key, each to its own row; without the key nothing opens and
//! nothing is written in plain text beside them.

use std::{fs, path::Path};

use super::{
    setting::{Setting, on_every_engine, sqlite},
    users::{email, signed_up},
};
use crate::{
    OldLinks, Sealed, SecretKeys, Store, StoreError, User, back_up,
    sealing::{signing_key_spot, totp_spot},
    tx::Tx,
};

const TOTP: &str = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

/// A file's worth of keys, each of one digit.
fn keys(digits: &str) -> SecretKeys {
    let lines = digits.chars().map(|digit| digit.to_string().repeat(64));
    SecretKeys::parse(&lines.collect::<Vec<_>>().join("\n")).unwrap()
}

/// The store as another process has it, with this file.
fn with_keys(at: &Setting, digits: &str) -> Store {
    at.store.clone().with_secret_keys(keys(digits))
}

async fn ann(store: &Store) -> User {
    store.users().find(&email("ann")).await.unwrap().unwrap()
}

fn totp(store: &Store, user: &User) -> Option<String> {
    store.users().open_totp(user).unwrap()
}

/// As the signer of result URLs has it.
async fn signer(store: &Store) -> Result<[u8; 32], StoreError> {
    Ok(store.signing_keys().await?.remove(0).secret)
}

async fn write(store: &Store, sql: &'static str, values: [String; 2]) {
    let written =
        store.write(async move |tx: &mut Tx| tx.execute_one(sql, &[&values[0], &values[1]]).await);
    written.await.unwrap();
}

async fn stored(store: &Store, sql: &'static str) -> String {
    let found =
        store.read(async move |tx: &mut Tx| tx.find(sql, &[], |row| row.string("stored")).await);
    found.await.unwrap().unwrap()
}

const TOTP_STORED: &str = "SELECT totp_secret AS stored FROM console_user";
const SIGNER_STORED: &str = "SELECT secret AS stored FROM signing_key";

#[tokio::test]
async fn what_was_in_plain_text_is_sealed_once_and_works_as_before() {
    on_every_engine(async |at: &Setting| {
        let user = signed_up(at, "ann").await;
        at.store
            .users()
            .set_totp(&user.id, Some(TOTP))
            .await
            .unwrap();
        let plain = signer(&at.store).await.unwrap();
        let report = at.store.secrets_report().await.unwrap();
        assert_eq!((report.plain, report.sealed), (2, 0));
        assert_eq!(at.store.seal_secrets().await.unwrap(), Sealed::default());

        let store = with_keys(at, "1");
        let sealed = Sealed {
            secrets: 2,
            traces: None,
        };
        assert_eq!(store.seal_secrets().await.unwrap(), sealed);
        assert_eq!(store.seal_secrets().await.unwrap(), Sealed::default());
        let report = store.secrets_report().await.unwrap();
        assert_eq!(
            (report.plain, report.sealed, report.unreadable),
            (0, 2, None)
        );
        assert_eq!(signer(&store).await.unwrap(), plain);
        assert_eq!(totp(&store, &ann(&store).await).as_deref(), Some(TOTP));
        // What comes after is never in plain text.
        store.rotate_signing_key(OldLinks::Refuse).await.unwrap();
        store.users().set_totp(&user.id, Some(TOTP)).await.unwrap();
        for sql in [TOTP_STORED, SIGNER_STORED] {
            assert!(stored(&store, sql).await.starts_with("sealed:1:"));
        }
        assert_ne!(signer(&store).await.unwrap(), plain);
        store.users().set_totp(&user.id, None).await.unwrap();
        assert_eq!(totp(&store, &ann(&store).await), None);
    })
    .await;
}

#[tokio::test]
async fn without_the_key_nothing_opens_and_nothing_is_written_in_plain_text() {
    on_every_engine(async |at: &Setting| {
        let user = signed_up(at, "ann").await;
        let store = with_keys(at, "1");
        store.users().set_totp(&user.id, Some(TOTP)).await.unwrap();
        store.seal_secrets().await.unwrap();
        let before = stored(&store, SIGNER_STORED).await;
        for (other, names) in [
            (at.store.clone(), "--secret-key-file"),
            (with_keys(at, "2"), keys("1").id()),
        ] {
            let refused = signer(&other).await.unwrap_err().to_string();
            assert!(refused.contains(names), "{refused}");
            let user = ann(&other).await;
            assert!(other.users().open_totp(&user).is_err());
            let report = other.secrets_report().await.unwrap();
            assert!(report.unreadable.unwrap().contains(names));
        }
        let rotated = at.store.rotate_signing_key(OldLinks::Refuse).await;
        assert!(matches!(rotated, Err(StoreError::Unavailable(_))));
        let rotated = with_keys(at, "2")
            .rotate_signing_key(OldLinks::Refuse)
            .await;
        assert!(matches!(rotated, Err(StoreError::Unavailable(_))));
        assert!(
            at.store
                .users()
                .set_totp(&user.id, Some(TOTP))
                .await
                .is_err()
        );
        assert!(with_keys(at, "2").seal_secrets().await.is_err());
        assert_eq!(stored(&store, SIGNER_STORED).await, before);
        // A second factor can be taken away without it.
        at.store.users().set_totp(&user.id, None).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn another_key_seals_everything_anew_and_the_old_one_can_go() {
    on_every_engine(async |at: &Setting| {
        let user = signed_up(at, "ann").await;
        let old = with_keys(at, "1");
        old.users().set_totp(&user.id, Some(TOTP)).await.unwrap();
        old.seal_secrets().await.unwrap();
        let secret = signer(&old).await.unwrap();
        let both = with_keys(at, "21");
        assert_eq!(both.seal_secrets().await.unwrap().secrets, 2);
        let new = with_keys(at, "2");
        assert_eq!(signer(&new).await.unwrap(), secret);
        assert_eq!(totp(&new, &ann(&new).await).as_deref(), Some(TOTP));
        assert!(signer(&old).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn a_sealed_secret_that_was_damaged_or_moved_to_another_row_is_refused() {
    on_every_engine(async |at: &Setting| {
        let (user, other) = (signed_up(at, "ann").await, signed_up(at, "bob").await);
        let store = with_keys(at, "1");
        store.users().set_totp(&user.id, Some(TOTP)).await.unwrap();
        let sealed = stored(
            &store,
            "SELECT totp_secret AS stored FROM console_user WHERE totp_secret IS NOT NULL",
        )
        .await;
        let swap = "UPDATE console_user SET totp_secret = $2 WHERE id = $1";
        write(&store, swap, [other.id.to_string(), sealed.clone()]).await;
        let moved = store.users().find(&email("bob")).await.unwrap().unwrap();
        let refused = store.users().open_totp(&moved);
        assert!(
            matches!(refused, Err(StoreError::Corrupt(_))),
            "{refused:?}"
        );
        let mut damaged = sealed.clone();
        let last = if damaged.pop() == Some('A') { 'E' } else { 'A' };
        damaged.push(last);
        write(&store, swap, [user.id.to_string(), damaged]).await;
        let refused = store.users().open_totp(&ann(&store).await);
        assert!(
            matches!(refused, Err(StoreError::Corrupt(_))),
            "{refused:?}"
        );
        // One of a user's does not sign, either.
        store.seal_secrets().await.unwrap();
        let report = store.secrets_report().await.unwrap();
        assert!(report.unreadable.is_some(), "{report:?}");
        let id = stored(&store, "SELECT id AS stored FROM signing_key").await;
        let swap = "UPDATE signing_key SET secret = $2 WHERE id = $1";
        write(&store, swap, [id, sealed]).await;
        let refused = store.signing_keys().await;
        assert!(matches!(refused, Err(StoreError::Corrupt(_))));
    })
    .await;
}

/// How often these bytes stand in the files of this folder.
fn count_in_files(folder: &Path, bytes: &[u8]) -> usize {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let count = |path| {
        let file = fs::read(path).unwrap();
        file.windows(bytes.len())
            .filter(|found| *found == bytes)
            .count()
    };
    files.filter(|path| path.is_file()).map(count).sum()
}

#[tokio::test]
async fn no_byte_of_a_secret_is_found_in_the_file_its_log_or_a_backup() {
    let at = sqlite().await;
    let folder = at.home.directory.path();
    let user = signed_up(&at, "ann").await;
    // As a service leaves it that ran without a key for a while: secrets in rows, in rows that are gone, in the log.
    let gone = TOTP.replace('G', "H");
    at.store
        .users()
        .set_totp(&user.id, Some(&gone))
        .await
        .unwrap();
    at.store
        .users()
        .set_totp(&user.id, Some(TOTP))
        .await
        .unwrap();
    let first = stored(&at.store, SIGNER_STORED).await;
    at.store.rotate_signing_key(OldLinks::Refuse).await.unwrap();
    let second = stored(&at.store, SIGNER_STORED).await;
    let secrets = [TOTP, &gone, &first, &second];
    for secret in secrets {
        let found = count_in_files(folder, secret.as_bytes());
        assert!(found > 0, "{secret} is looked for in the wrong place");
    }
    let store = with_keys(&at, "1");
    assert_eq!(store.seal_secrets().await.unwrap().traces, None);
    store.users().set_totp(&user.id, Some(TOTP)).await.unwrap();
    let copy = tempfile::tempdir().unwrap();
    back_up(folder, copy.path()).unwrap();
    for secret in secrets {
        for folder in [folder, copy.path()] {
            assert_eq!(count_in_files(folder, secret.as_bytes()), 0, "{secret}");
        }
    }
    assert_eq!(totp(&store, &ann(&store).await).as_deref(), Some(TOTP));
    at.check_books().await;
}

#[test]
fn every_row_has_a_spot_of_its_own() {
    let spots = [signing_key_spot("a"), signing_key_spot("b"), totp_spot("a")];
    let sealed = keys("1").seal(spots[0], "secret").unwrap();
    let opens = spots.map(|spot| keys("1").open(spot, &sealed).is_ok());
    assert_eq!(opens, [true, false, false]);
}
