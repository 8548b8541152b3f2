//! What is particular to a server: rows locked by others, connections that end in the middle, a server that dies,
//! certificates, transactions that someone forgot.

use std::{path::Path, time::Duration};

use futures_util::future::join_all;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use upscale_core::{Clock, Permission, limits};

use super::{Begin, Db, Durability};
use crate::{
    KeyOutcome, PurchaseOutcome, Settlement, Spent, Store, StoreError, StoreOptions,
    conformance::{
        earlier_rows::EARLIER_ROWS,
        home::{
            Commits, Home,
            postgres_server::{PostgresServer, start_if_installed},
        },
        setting::{NOON, Setting, result_file},
    },
};

mod locks;

/// None, said aloud, where PostgreSQL is not installed.
async fn postgres() -> Option<Setting> {
    Some(Setting::new(Home::postgres()?).await)
}

fn db(store: &Store) -> &Db {
    match store {
        Store::Postgres(db) => db,
        Store::Sqlite(_) => panic!("this test is about the server"),
    }
}

/// Someone else's session on the same database.
async fn outsider(at: &Setting) -> Client {
    session(&at.home).await
}

async fn session(home: &Home) -> Client {
    let (client, connection) = tokio_postgres::connect(&home.url().unwrap(), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

fn assert_unavailable<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    assert!(
        matches!(answer, Err(StoreError::Unavailable(_))),
        "{answer:?}"
    );
}

#[tokio::test]
async fn many_that_meet_a_database_without_tables_make_them_once() {
    let Some(home) = Home::postgres_without_tables() else {
        return;
    };
    let clock = Clock::manual(NOON);
    let stores = join_all((0..4).map(|_| home.open(&clock, Commits::Durable))).await;
    let account = stores[0].accounts().create("A customer").await.unwrap().id;
    for store in &stores {
        assert!(store.accounts().find(&account).await.unwrap().is_some());
        assert_eq!(store.signing_keys().await.unwrap().len(), 1);
    }
}

/// A dump reads every table for as long as it takes. A migration that waited for its end would have everyone else wait
/// behind it, and be put off after 3 s.
#[tokio::test]
async fn a_migration_lets_the_service_go_on_while_another_session_reads_its_table() {
    let newest = EARLIER_ROWS.len() as i32;
    let homes = Home::every_of_schema(newest).await;
    let Some(home) = homes.into_iter().find(|home| home.url().is_some()) else {
        return;
    };
    let (dump, service) = (session(&home).await, session(&home).await);
    dump.batch_execute("BEGIN; SELECT 1 FROM task")
        .await
        .unwrap();
    service
        .batch_execute("SET lock_timeout = '3s'")
        .await
        .unwrap();
    let reads = async {
        for _ in 0..50 {
            service.batch_execute("SELECT 1 FROM task").await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        dump.batch_execute("COMMIT").await.unwrap();
    };
    let clock = Clock::manual(NOON);
    let (store, ()) = futures_util::join!(home.open(&clock, Commits::Durable), reads);
    assert_eq!(store.signing_keys().await.unwrap().len(), 1);
}

#[tokio::test]
async fn every_session_syncs_its_commits_and_has_its_own_limits() {
    let Some(at) = postgres().await else { return };
    let tx = db(&at.store).begin(Begin::Read).await.unwrap();
    for (name, expected) in [
        ("synchronous_commit", "on"),
        ("fsync", "on"),
        ("statement_timeout", "5s"),
        ("lock_timeout", "3s"),
        ("idle_in_transaction_session_timeout", "10s"),
        ("default_transaction_isolation", "read committed"),
    ] {
        let shown = tx
            .find("SELECT current_setting($1) AS shown", &[&name], |row| {
                row.string("shown")
            })
            .await;
        assert_eq!(shown.unwrap().as_deref(), Some(expected), "{name}");
    }
}

#[tokio::test]
async fn claims_and_rotations_outlive_columns_that_a_newer_program_adds() {
    let Some(at) = postgres().await else { return };
    let account = at.account_for(24).await;
    let accounts = at.store.accounts();
    let made = accounts
        .create_key(&account, Permission::Write, "rotated")
        .await;
    let KeyOutcome::Made(mut key, _) = made.unwrap() else {
        panic!("no key was made")
    };
    for round in 0..24 {
        at.accepted(&account, &format!("{round}")).await;
        let claim = at.claimed().await;
        at.succeed(&claim).await;
        let rotated = accounts.rotate_key(&key.id, 0).await.unwrap();
        let KeyOutcome::Made(successor, _) = rotated else {
            panic!("{rotated:?}")
        };
        key = successor;
        for table in ["task", "job", "api_key"] {
            let newer = format!("ALTER TABLE {table} ADD COLUMN of_tomorrow_{round} BIGINT");
            at.home.try_sql(&newer).unwrap();
        }
    }
}

#[tokio::test]
async fn a_transaction_that_someone_left_open_is_named() {
    let Some(at) = postgres().await else { return };
    assert_eq!(
        at.store.operator().list_old_transactions(0).await.unwrap(),
        []
    );
    let other = outsider(&at).await;
    other
        .batch_execute("SET application_name = 'forgotten'; BEGIN; SELECT 1")
        .await
        .unwrap();
    let old = at.store.operator().list_old_transactions(0).await.unwrap();
    let [one] = &old[..] else { panic!("{old:?}") };
    assert_eq!(
        (one.application.as_str(), one.state.as_str()),
        ("forgotten", "idle in transaction")
    );
    assert_eq!(one.user, "upscale");
    assert_eq!(
        at.store
            .operator()
            .list_old_transactions(3_600)
            .await
            .unwrap(),
        []
    );
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(
        at.store.operator().list_old_transactions(0).await.unwrap(),
        []
    );
}

/// One number, asked as KEDA asks: the text of the answer, read as a number.
async fn number_in_words(client: &Client, sql: &str) -> f64 {
    let answer = client.simple_query(sql).await.unwrap();
    let rows = answer.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let rows: Vec<&str> = rows.collect();
    assert_eq!(rows.len(), 1, "{sql}");
    rows[0].parse().unwrap()
}

/// What stands between these two in a file of the project.
fn quoted(file: &str, start: &str, end: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    let text = std::fs::read_to_string(path).unwrap();
    let (_, after) = text.split_once(start).unwrap();
    after.split_once(end).unwrap().0.to_owned()
}

#[tokio::test]
async fn the_queries_for_autoscaling_say_what_is_owed() {
    let Some(at) = postgres().await else { return };
    let chart = "packages/helm/upscale/templates/autoscaling.yaml";
    let chart = quoted(chart, "query: \"", "\"");
    let document = quoted("docs/operating.md", "```sql\nSELECT ceil", "```");
    let document = format!("SELECT ceil{document}");
    let keda = outsider(&at).await;
    let account = at.account_for(30).await;
    at.plenty_of_slots().await;
    for n in 0..12 {
        // From the guess of the first start over measured paces: 3 s a job settles, one is claimed, the others wait.
        let glance = at.store.tasks().queue_glance().await.unwrap();
        assert_eq!(glance.waiting + glance.claimed, n);
        let owed = f64::from(n) * glance.seconds_per_job;
        let seconds = number_in_words(&keda, &chart).await;
        assert!(
            (seconds - owed).abs() < 1e-3,
            "{n} jobs: {seconds} for {owed}"
        );
        let busy = number_in_words(&keda, &document).await;
        assert_eq!(busy, (owed / 30.0).ceil(), "{n} jobs");
        at.accepted(&account, &format!("kept {n}")).await;
        at.accepted(&account, &format!("done {n}")).await;
        let claims = at.store.tasks().claim("worker", 2, &[]).await.unwrap();
        let settlement = Settlement::Succeeded(result_file());
        let (task, attempt) = (&claims[0].task_id, claims[0].attempt);
        let seconds = f64::from(n) * 7.0;
        let settled = at
            .store
            .tasks()
            .settle(task, attempt, settlement, Spent::slot(seconds))
            .await;
        settled.unwrap();
        at.store
            .tasks()
            .release(&claims[1].task_id, claims[1].attempt)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_server_that_dies_is_unavailable_and_loses_nothing_that_was_answered() {
    let Some(server) = start_if_installed() else {
        return;
    };
    server.create_database("dies", None);
    let options = StoreOptions::default();
    let opened = Store::open_postgres(&server.url("dies"), 4, Clock::System, options).await;
    let store = opened.unwrap();
    let account = store.accounts().create("A customer").await.unwrap().id;
    let credited = store
        .accounts()
        .credit(&account, limits::PRICE, "a payment")
        .await;
    credited.unwrap();
    server.stop_immediately().unwrap();
    assert_unavailable(
        store
            .accounts()
            .credit(&account, limits::PRICE, "another")
            .await,
    );
    assert_unavailable(store.accounts().find(&account).await);
    assert_unavailable(store.check_writable().await);
    server.start_again().unwrap();
    store.check_writable().await.unwrap();
    let standing = store.accounts().find(&account).await.unwrap().unwrap();
    assert_eq!(standing.available, limits::PRICE);
    let again = store
        .accounts()
        .credit(&account, limits::PRICE, "a payment")
        .await;
    assert_eq!(again.unwrap(), PurchaseOutcome::AlreadyCredited);
    assert_eq!(store.audit(None).await.unwrap().breaches, []);
}

#[tokio::test]
async fn without_a_hand_the_servers_clock_counts() {
    let Some(home) = Home::postgres() else { return };
    let (url, options) = (home.url().unwrap(), StoreOptions::default());
    // A hand far from today for this process; the server's own for the other.
    let at_noon = home.open(&Clock::manual(NOON), Commits::Durable).await;
    let store = Store::Postgres(
        Db::open(&url, 1, Clock::System, options, Durability::Full)
            .await
            .unwrap(),
    );
    let reported =
        home.try_sql("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)");
    let reported: i64 = reported.unwrap().parse().unwrap();
    let apart = store.now().micros() - reported;
    assert!(
        apart.abs() < 60_000_000,
        "{apart} microseconds from the server"
    );
    assert_eq!(at_noon.now(), NOON);
    let account = store.accounts().create("A customer").await.unwrap();
    assert!(account.created_at.micros() > NOON.micros());
}

/// Certificates by a new authority: its root, and one for this name with its key.
fn certificates(name: &str) -> (String, String, String) {
    let root_key = rcgen::KeyPair::generate().unwrap();
    let mut root = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
    root.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root_certificate = root.self_signed(&root_key).unwrap();
    let issuer = rcgen::Issuer::new(root, root_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let leaf = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &issuer).unwrap();
    (root_certificate.pem(), leaf.pem(), key.serialize_pem())
}

fn server_with_certificate(certificate: &str, key: &str) -> Option<PostgresServer> {
    let server = start_if_installed()?;
    for (name, text) in [("server.crt", certificate), ("server.key", key)] {
        let path = server.data().join(name);
        std::fs::write(&path, text).unwrap();
        server.give(&path);
    }
    server.create_database("secure", None);
    for setting in [
        "ssl = on",
        "ssl_cert_file = 'server.crt'",
        "ssl_key_file = 'server.key'",
    ] {
        server.sql("postgres", &format!("ALTER SYSTEM SET {setting}"));
    }
    server.sql("postgres", "SELECT pg_reload_conf()");
    Some(server)
}

#[tokio::test]
async fn sslmode_is_honoured() {
    let (root, certificate, key) = certificates("localhost");
    let Some(server) = server_with_certificate(&certificate, &key) else {
        return;
    };
    let folder = tempfile::TempDir::new().unwrap();
    let (known, untrusted) = (
        folder.path().join("known.pem"),
        folder.path().join("untrusted.pem"),
    );
    std::fs::write(&known, root).unwrap();
    std::fs::write(&untrusted, certificates("localhost").0).unwrap();
    let (known, untrusted) = (known.display(), untrusted.display());
    for (host, flags, expected) in [
        ("127.0.0.1", "sslmode=disable".to_owned(), Some("false")),
        ("127.0.0.1", "sslmode=prefer".to_owned(), Some("true")),
        ("127.0.0.1", "sslmode=require".to_owned(), Some("true")),
        (
            "127.0.0.1",
            format!("sslmode=verify-ca&sslrootcert={known}"),
            Some("true"),
        ),
        (
            "127.0.0.1",
            format!("sslmode=require&sslrootcert={untrusted}"),
            None,
        ),
        (
            "127.0.0.1",
            format!("sslmode=verify-full&sslrootcert={known}"),
            None,
        ),
        (
            "localhost",
            format!("sslmode=verify-full&sslrootcert={known}"),
            Some("true"),
        ),
        (
            "localhost",
            format!("sslmode=verify-full&sslrootcert={untrusted}"),
            None,
        ),
        ("localhost", "sslmode=verify-full".to_owned(), None),
    ] {
        let url = format!("postgres://upscale@{host}:{}/secure?{flags}", server.port());
        let options = StoreOptions::default();
        let opened = Store::open_postgres(&url, 1, Clock::System, options).await;
        let Some(encrypted) = expected else {
            assert_unavailable(opened);
            continue;
        };
        let store = opened.unwrap_or_else(|error| panic!("{flags}: {error}"));
        let sql = "SELECT CAST(ssl AS TEXT) AS shown FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let tx = db(&store).begin(Begin::Read).await.unwrap();
        let shown = tx.find(sql, &[], |row| row.string("shown")).await.unwrap();
        assert_eq!(shown.as_deref(), Some(encrypted), "{host} {flags}");
    }
}

#[tokio::test]
async fn an_address_where_no_one_answers_is_unavailable_and_says_no_password() {
    let url = "postgres://upscale:hunter22@127.0.0.1:1/nothing";
    let opened = Store::open_postgres(url, 1, Clock::System, StoreOptions::default()).await;
    let Err(StoreError::Unavailable(words)) = opened else {
        panic!("{opened:?}");
    };
    assert!(!words.contains("hunter22"), "{words}");
}

#[tokio::test]
async fn an_error_names_its_rule_and_quotes_no_row() {
    let Some(at) = postgres().await else { return };
    let account = at.account_for(2).await;
    at.accepted(&account, "a secret of the customer").await;
    let tx = db(&at.store).begin(Begin::Write).await.unwrap();
    let sql = "INSERT INTO task SELECT 'ups_other', account_id, idempotency_key, fingerprint, source_url, scale,
                   face_enhance, price, request_id, created_at, day, deadline_at FROM task";
    let refused = tx.execute(sql, &[]).await;
    let Err(StoreError::Corrupt(words)) = tx.end(refused).await else {
        panic!("accepted");
    };
    assert!(
        words.contains("23505") && words.contains("idempotency_key"),
        "{words}"
    );
    assert!(!words.contains("secret"), "{words}");
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused_and_left_alone() {
    let Some(at) = postgres().await else { return };
    let newer =
        "INSERT INTO refinery_schema_history SELECT version + 94, name, applied_on, checksum
         FROM refinery_schema_history ORDER BY version DESC LIMIT 1";
    outsider(&at).await.batch_execute(newer).await.unwrap();
    let options = StoreOptions::default();
    let opened = Store::open_postgres(&at.home.url().unwrap(), 1, at.clock.clone(), options).await;
    let words = opened.unwrap_err().to_string();
    assert!(words.contains("newer upscale"), "{words}");
}
