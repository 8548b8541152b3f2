//! A database that is not there, is another's, or cannot be read; too few files: the service says in plain words what is wrong
//! and what to do, and changes nothing.

use std::{fs, path::Path, process::Command};

use rusqlite::Connection;

use crate::harness::{
    World,
    client::order,
    serve::{upscale, wait_for},
};

/// A service that has made a result, and has ended.
fn ended_world() -> World {
    let mut world = World::start();
    let customer = world.customer("1");
    let url = world.picture("/small.png", 8, 8);
    customer.upscale("first-key", &order(&url, 2));
    world.finish();
    world
}

/// What a start that fails says on standard error.
fn refusal(mut command: Command) -> String {
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(output.stdout.is_empty(), "it said it is ready");
    words
}

fn serve(data: &Path) -> Command {
    let mut command = upscale();
    command.args(["serve", "--workers", "0", "--listen", "127.0.0.1:0"]);
    command.args(["--results-listen", "127.0.0.1:0", "--data"]);
    command.arg(data);
    command
}

/// The database with its log, wherever they are.
fn move_database(from: &Path, to: &Path) {
    for name in ["upscale.db", "upscale.db-wal", "upscale.db-shm"] {
        if from.join(name).exists() {
            fs::rename(from.join(name), to.join(name)).unwrap();
        }
    }
}

#[test]
fn results_without_their_database_are_no_place_to_begin_anew() {
    let world = ended_world();
    let (data, away) = (world.data(), world.path("away"));
    fs::create_dir(&away).unwrap();
    move_database(&data, &away);
    let says = |what: &str| {
        let words = refusal(serve(&data));
        assert!(words.contains(what) && words.contains("backup"), "{words}");
        assert!(words.contains("result files"), "{words}");
    };
    says("is missing or empty");
    assert!(!data.join("upscale.db").exists(), "one was made");
    fs::write(data.join("upscale.db"), b"").unwrap();
    says("is missing or empty");
    fs::remove_file(data.join("upscale.db")).unwrap();

    // Another service's database, which knows none of these files.
    let other = World::prepare(&[]);
    other.operator.create_account("of another service");
    move_database(&other.data(), &data);
    says("has never seen a task");
    // Its log too: SQLite would write what a log that stayed behind holds into whichever database lies beside it.
    let elsewhere = world.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    move_database(&data, &elsewhere);
    move_database(&away, &data);
    assert_eq!(world.operator.audit_breaches(), Vec::<String>::new());
}

#[test]
fn a_database_that_is_moved_away_while_it_is_served_takes_no_orders_until_it_is_back() {
    let world = World::start();
    let customer = world.customer("1");
    let order = order(&world.picture("/small.png", 8, 8), 2);
    let is_ready = || customer.send("GET", "/readyz", &[], None).status == 200;
    wait_for("ready", is_ready);
    let (file, away) = (world.data().join("upscale.db"), world.path("away.db"));
    fs::rename(&file, &away).unwrap();
    customer
        .create("key-while-moved", &order)
        .expect(503, "service_unavailable");
    wait_for("not ready", || !is_ready());
    assert!(world.logs().contains("is gone: nothing more is written"));
    fs::rename(&away, &file).unwrap();
    wait_for("ready", is_ready);
    customer.create("key-while-moved", &order).expect(202, "");
}

#[test]
fn a_database_of_a_newer_version_is_left_to_it() {
    let world = ended_world();
    let database = Connection::open(world.data().join("upscale.db")).unwrap();
    let newer = "INSERT INTO refinery_schema_history SELECT 1000, name, applied_on, checksum
         FROM refinery_schema_history ORDER BY version DESC LIMIT 1";
    database.execute_batch(newer).unwrap();
    let words = refusal(serve(&world.data()));
    assert!(
        words.contains("newer upscale") && words.contains("1000"),
        "{words}"
    );
    let undo = "DELETE FROM refinery_schema_history WHERE version = 1000";
    database.execute_batch(undo).unwrap();
    assert_eq!(world.operator.audit_breaches(), Vec::<String>::new());
}

#[test]
fn a_file_that_is_no_database_is_said_to_be_damaged() {
    let folder = tempfile::TempDir::new().unwrap();
    fs::write(
        folder.path().join("upscale.db"),
        "no database".repeat(1_000),
    )
    .unwrap();
    let words = refusal(serve(folder.path()));
    assert!(
        words.contains("damaged") && words.contains("upscale backup"),
        "{words}"
    );
}

#[test]
fn a_process_that_may_open_sixteen_files_says_so_and_does_not_start() {
    let folder = tempfile::TempDir::new().unwrap();
    let command = serve(&folder.path().join("data"));
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 16 && exec \"$0\" \"$@\""]);
    limited.arg(command.get_program()).args(command.get_args());
    let words = refusal(limited);
    assert!(
        words.contains("16 files") && words.contains("ulimit -n"),
        "{words}"
    );
}
