//! Four API processes on one PostgreSQL: what the contract counts is counted exactly, whichever of them is asked, and
//! a key that was revoked is refused by all. `UPSCALE_EXACT_ACCOUNTS=1000` is the long form of the identical creates.

use std::{
    collections::{BTreeSet, HashMap},
    process::Command,
    thread,
};

use serde_json::Value;
use tempfile::TempDir;
use upscale_core::limits;

use crate::harness::{
    client::{Answer, order, send},
    figure::{print_figure, tries_and_bound},
    postgres_server::{PostgresServer, start_if_installed},
    serve::{Serve, log_path, upscale, wait_for},
};

const PROCESSES: usize = 4;
const DATABASE: &str = "several";
/// Identical creates at once: four more than one account may send in a minute.
const IDENTICAL: usize = 64;
const WINDOW: usize = limits::CREATE_REQUESTS_PER_MINUTE as usize;
/// Accounts that send them, in the short form.
const ACCOUNTS: usize = 6;

/// Four processes, their server and what they share.
struct Fleet {
    server: PostgresServer,
    folder: TempDir,
    apis: Vec<Serve>,
}

struct Customer {
    account: String,
    key_id: String,
    key: String,
}

impl Fleet {
    fn start() -> Option<Self> {
        let mut fleet = Self {
            server: start_if_installed()?,
            folder: TempDir::new().unwrap(),
            apis: Vec::new(),
        };
        fleet.server.create_database(DATABASE, None);
        for number in 0..PROCESSES {
            let log = log_path(fleet.folder.path(), number);
            let command = fleet.command(&["api", "--metrics-listen", "127.0.0.1:0"]);
            let api = Serve::start_front(command, &log);
            fleet.apis.push(api);
        }
        // Someone who would work, so that nothing is refused for want of workers.
        let seen_at = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)";
        let worker =
            format!("INSERT INTO worker VALUES ('in theory', 100000, {seen_at} + 30000000)");
        fleet.server.sql(DATABASE, &worker);
        Some(fleet)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = upscale();
        command
            .args(arguments)
            .arg("--data")
            .arg(self.folder.path());
        command.env("UPSCALE_DATABASE", self.server.url(DATABASE));
        command
    }

    fn operate(&self, arguments: &[&str]) -> Value {
        let output = self.command(arguments).arg("--json").output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn customer(&self) -> Customer {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let made = self.operate(&["account", "create", "A customer"]);
        let account = text(&made["account"]);
        let reference = format!("payment of {account}");
        self.operate(&[
            "account",
            "credit",
            &account,
            "5000",
            "--reference",
            &reference,
        ]);
        let key = self.operate(&["key", "create", &account]);
        Customer {
            key_id: text(&key["id"]),
            key: text(&key["key"]),
            account,
        }
    }

    /// As many creates at once as there are keys, to each process in turn.
    fn create_all(&self, customer: &Customer, keys: &[String]) -> Vec<Answer> {
        let body = order("https://pictures.example.org/a.png", 2).to_string();
        let create = |n: usize, key: &str| {
            let url = format!("{}/api/v1/upscales", self.apis[n % PROCESSES].api);
            let bearer = format!("Bearer {}", customer.key);
            let headers = [
                ("authorization", bearer.as_str()),
                ("content-type", "application/json"),
                ("idempotency-key", key),
            ];
            send("POST", &url, &headers, Some(body.as_bytes())).expect("no answer")
        };
        let create = &create;
        thread::scope(|scope| {
            let asked: Vec<_> = keys
                .iter()
                .enumerate()
                .map(|(n, key)| scope.spawn(move || create(n, key)))
                .collect();
            asked.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }

    /// A customer of whom 2,490 tasks were accepted today, each with its whole history.
    fn customer_late_in_the_day(&self) -> Customer {
        let customer = self.customer();
        self.server
            .sql(DATABASE, &yesterday_is_today(&customer.account));
        customer
    }

    fn audit(&self) {
        let report = self.operate(&["audit"]);
        assert_eq!(report["ok"], true, "{report}");
    }
}

/// Tasks that failed and were refunded long ago today, in the rows that they leave.
fn yesterday_is_today(account: &str) -> String {
    let now = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)";
    let tasks = limits::DAILY_TASKS_MAX - 10;
    let price = limits::PRICE.thousandths();
    format!(
        "INSERT INTO task (id, account_id, idempotency_key, fingerprint, source_url, scale, face_enhance, price,
             request_id, created_at, day, deadline_at, state, finished_at, failure_message, refund)
         SELECT 'ups_' || lpad(to_hex(n), 26, '0'), '{account}', 'earlier-' || n, 'x', 'https://example.org/', 2, false,
             {price}, 'req_' || lpad(to_hex(n), 26, '0'), now, now / 86400000000, now, 'failed', now, 'It failed', 'refunded'
         FROM generate_series(1, {tasks}) AS n, (SELECT {now} AS now) AS clock;
         INSERT INTO ledger (at, account_id, kind, debit, credit, amount, task_id)
         SELECT created_at, account_id, 'reserve', 'available', 'held', price, id FROM task WHERE account_id = '{account}';
         INSERT INTO ledger (at, account_id, kind, debit, credit, amount, task_id)
         SELECT created_at, account_id, 'refund', 'held', 'available', price, id FROM task WHERE account_id = '{account}';
         INSERT INTO account_day SELECT account_id, day, count(*) FROM task WHERE account_id = '{account}' GROUP BY 1, 2"
    )
}

fn keys(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{name}-{n:04}")).collect()
}

fn with_status(answers: &[Answer], status: u16, code: &str) -> usize {
    let matching = answers
        .iter()
        .filter(|answer| answer.status == status && (code.is_empty() || answer.code() == code));
    matching.count()
}

#[test]
fn sixty_a_minute_twenty_at_a_time_and_2_500_a_day_hold_over_four_processes() {
    let Some(fleet) = Fleet::start() else { return };
    sixty_a_minute(&fleet);
    let customer = fleet.customer();
    let answers = fleet.create_all(&customer, &keys("active", 50));
    assert_eq!(
        with_status(&answers, 202, ""),
        limits::ACTIVE_TASKS_MAX as usize
    );
    assert_eq!(
        with_status(&answers, 429, "active_task_limit_exceeded"),
        30,
        "{answers:?}"
    );
    let late = fleet.customer_late_in_the_day();
    let answers = fleet.create_all(&late, &keys("late", 40));
    assert_eq!(with_status(&answers, 202, ""), 10);
    assert_eq!(
        with_status(&answers, 429, "daily_limit_exceeded"),
        30,
        "{answers:?}"
    );
    fleet.audit();
    print_figure(
        &format!("limits over {PROCESSES} API processes, everything at once"),
        "exactly 60 a minute, 20 active, 2,500 a day",
        "exactly 60, 20, 2,500",
        "200, 50 and 40 creates",
    );
}

/// Replays count too, so one key will do; only windows that were overrun say anything.
fn sixty_a_minute(fleet: &Fleet) {
    let customer = fleet.customer();
    let answers = fleet.create_all(&customer, &vec!["one-key-for-all".to_owned(); 200]);
    let mut windows: HashMap<String, (usize, usize)> = HashMap::new();
    for answer in &answers {
        let reset = answer.header("x-ratelimit-reset").to_owned();
        let (passed, refused) = windows.entry(reset).or_default();
        match answer.status {
            202 => *passed += 1,
            429 if answer.code() == "rate_limit_exceeded" => *refused += 1,
            _ => panic!("{answer:?}"),
        }
    }
    let overrun: Vec<_> = windows
        .values()
        .filter(|(_, refused)| *refused > 0)
        .collect();
    assert!(!overrun.is_empty(), "{windows:?}");
    assert!(
        overrun.iter().all(|(passed, _)| *passed == WINDOW),
        "{windows:?}"
    );
}

#[test]
fn identical_creates_over_four_processes_make_one_task_and_one_reserve() {
    let Some(fleet) = Fleet::start() else { return };
    let accounts = std::env::var("UPSCALE_EXACT_ACCOUNTS");
    let accounts = accounts.map_or(ACCOUNTS, |text| text.parse().unwrap());
    let mut put_off = 0;
    for _ in 0..accounts {
        let customer = fleet.customer();
        let key = "the-same-key".to_owned();
        let answers = fleet.create_all(&customer, &vec![key; IDENTICAL]);
        let accepted = answers.iter().filter(|answer| answer.status == 202);
        let ids: Vec<String> = accepted.map(Answer::id).collect();
        // Past the sixtieth of a minute the window closes; a new minute may have begun in between. On a machine that
        // has no time, some wait for the account for longer than 3 s, or for the whole for 10 s, and are told to come
        // again.
        let past = with_status(&answers, 429, "rate_limit_exceeded");
        let busy = with_status(&answers, 503, "") + with_status(&answers, 504, "");
        assert!(ids.len() + busy >= WINDOW, "{answers:?}");
        assert_eq!(ids.len() + past + busy, IDENTICAL, "{answers:?}");
        put_off += busy;
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 1);
        let shown = fleet.operate(&["account", "show", &customer.account]);
        assert_eq!(shown["reserved"], 0.7, "{shown}");
    }
    fleet.audit();
    let sql = |sql: &str| fleet.server.sql(DATABASE, sql);
    let tasks = sql("SELECT count(*) FROM task");
    let reserves = sql("SELECT count(*) FROM ledger WHERE kind = 'reserve'");
    assert_eq!([&tasks, &reserves], [&accounts.to_string(); 2]);
    print_figure(
        &format!("{IDENTICAL} identical creates at once over {PROCESSES} API processes"),
        "1 task, 1 reserve; only 202 and, past the 60th of a minute, 429",
        &format!("1 task, 1 reserve each; {put_off} times 503 or 504"),
        &tries_and_bound(accounts, "keys"),
    );
}

#[test]
fn a_revoked_key_is_refused_by_all_four_processes() {
    let Some(fleet) = Fleet::start() else { return };
    let customer = fleet.customer();
    let bearer = format!("Bearer {}", customer.key);
    let status = |api: &Serve| {
        let url = format!("{}/api/v1/upscales/ups_00000000000000000000000000", api.api);
        let answer = send("GET", &url, &[("authorization", &bearer)], None);
        answer.expect("no answer").status
    };
    assert!(
        fleet.apis.iter().all(|api| status(api) == 404),
        "the key works"
    );
    fleet.operate(&["key", "revoke", &customer.key_id]);
    // The contract allows five seconds; here it is the very next request.
    assert!(fleet.apis.iter().all(|api| status(api) == 401));
}

/// How many requests a process holds.
fn held(api: &Serve) -> usize {
    let url = format!("{}/metrics", api.metrics.as_ref().unwrap());
    let answer = send("GET", &url, &[], None).expect("no answer");
    let text = String::from_utf8(answer.body).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("upscale_requests_held "));
    line.map_or(0, |count| count.parse().unwrap())
}

/// What a worker on another machine leaves behind when it fails a task, as far as readers see it.
fn fail(task: &str) -> String {
    format!(
        "UPDATE task SET state = 'failed', refund = 'refunded', failure_message = 'It failed. No credits were charged.',
             finished_at = created_at WHERE id = '{task}'"
    )
}

#[test]
fn a_caller_who_waits_at_any_of_four_processes_gets_the_end_even_if_the_database_was_cut_off_meanwhile()
 {
    let Some(fleet) = Fleet::start() else { return };
    let customer = fleet.customer();
    let created = fleet.create_all(&customer, &keys("waited-for", 1));
    let id = created[0].id();
    let bearer = format!("Bearer {}", customer.key);
    let wait = |api: &Serve| {
        let url = format!("{}/api/v1/upscales/{id}", api.api);
        let headers = [("authorization", bearer.as_str()), ("prefer", "wait=30")];
        send("GET", &url, &headers, None).expect("no answer")
    };
    let wait = &wait;
    let answers: Vec<Answer> = thread::scope(|scope| {
        let waiting: Vec<_> = fleet
            .apis
            .iter()
            .map(|api| scope.spawn(move || wait(api)))
            .collect();
        for api in &fleet.apis {
            wait_for("a held request", || held(api) == 1);
        }
        // Every connection that any of them looks by is gone, and the news comes while it is.
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'upscale'";
        fleet.server.sql(DATABASE, &format!("{cut}; {}", fail(&id)));
        waiting.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for answer in answers {
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["status"], "failed", "{answer:?}");
        assert_eq!(answer.header("preference-applied"), "wait=30");
    }
}
