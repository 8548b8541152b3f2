//! The load: every create is counted, accepted, claimed and settled as in the service; only the pixels are left out.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use tokio::{task::JoinSet, time::interval};
use upscale_core::{
    AccountId, Credits, IdempotencyKey, NewTask, Parameters, RequestId, ResultFile, Scale,
    SourceUrl, TaskId, random_token,
};
use upscale_store::{Claim, CreateOutcome, Settlement, Spent, Store};

use crate::figure::print_figure;

pub(crate) type Failed = Box<dyn Error + Send + Sync>;

/// Accounts that create in turn: the limits of one would end the run at once.
const ACCOUNTS: usize = 200;
pub(crate) const LOAD_SECONDS: u64 = 10;
/// Creates in flight when as many as possible are made.
const IN_FLIGHT: usize = 64;
/// The rates of the figures to reach.
const CREATES_A_SECOND: u32 = 100;
const READS_A_SECOND: u32 = 500;
/// Transactions of a task: its request is counted, it is created, it is settled. Claims are shared by up to 64.
const COMMITS_A_TASK: u64 = 3;

/// Runs the load on a store and prints it beside what the engine alone commits in a second.
pub(crate) async fn run(store: &Store, engine: &str, engine_alone: u64) -> Result<(), Failed> {
    let accounts = open_accounts(store).await?;
    let worker = tokio::spawn(work(store.clone()));

    let began = Instant::now();
    let (mut created, tasks) = as_many_as_possible(store, &accounts).await?;
    wait_until_done(store).await?;
    let took = began.elapsed().as_secs_f64();
    created.sort_unstable();
    report(
        &format!("creates, {IN_FLIGHT} in flight"),
        &created,
        LOAD_SECONDS,
    );
    let tasks_a_second = (tasks.len() as f64 / took) as u64;
    let commits = tasks_a_second * COMMITS_A_TASK;
    println!(
        "tasks through queue and ledger, first create to last settlement: {tasks_a_second}/s; {commits} verbs/s that \
         must be durable = {:.2} of the engine alone",
        commits as f64 / engine_alone as f64
    );

    print_figure(
        &format!("creates as fast as they go, {IN_FLIGHT} in flight, {engine}"),
        "≥ 300/s",
        &format!(
            "{}/s, p99 {:.1} ms",
            created.len() as u64 / LOAD_SECONDS,
            p99(&created)
        ),
        &format!("{} creates", created.len()),
    );
    let per_commit = commits as f64 / engine_alone as f64;
    print_figure(
        &format!("tasks through queue and ledger, {engine}"),
        "—",
        &format!("{tasks_a_second}/s: {per_commit:.2} durable verbs a commit of the engine alone"),
        &format!("{} tasks", tasks.len()),
    );

    let created = paced(CREATES_A_SECOND, |n| {
        let (store, account) = (store.clone(), accounts[n % ACCOUNTS]);
        async move { create(&store, &account).await.map(drop) }
    });
    figure(
        "creates",
        CREATES_A_SECOND,
        engine,
        "p99 ≤ 50 ms",
        &created.await?,
    );

    let read = paced(READS_A_SECOND, |n| {
        let (store, (account, task)) = (store.clone(), tasks[n % tasks.len()]);
        async move { Ok(store.tasks().find(&account, &task).await.map(drop)?) }
    });
    figure("reads", READS_A_SECOND, engine, "p99 ≤ 10 ms", &read.await?);

    wait_until_done(store).await?;
    worker.abort();
    let began = Instant::now();
    let breaches = store.audit(None).await?.breaches.len();
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "audit of {} tasks: {breaches} breaches, {seconds:.2} s",
        tasks.len()
    );
    Ok(())
}

fn figure(what: &str, a_second: u32, engine: &str, goal: &str, sorted: &[Duration]) {
    report(&format!("{what}, {a_second}/s"), sorted, LOAD_SECONDS);
    print_figure(
        &format!("{what} at {a_second}/s, {engine}"),
        goal,
        &format!("p99 {:.1} ms", p99(sorted)),
        &format!("{} {what}", sorted.len()),
    );
}

/// In milliseconds.
fn p99(sorted: &[Duration]) -> f64 {
    sorted[(sorted.len() - 1) * 99 / 100].as_secs_f64() * 1e3
}

async fn wait_until_done(store: &Store) -> Result<(), Failed> {
    loop {
        let glance = store.tasks().queue_glance().await?;
        if glance.waiting + glance.claimed == 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) async fn open_accounts(store: &Store) -> Result<Vec<AccountId>, Failed> {
    let mut accounts = Vec::new();
    for _ in 0..ACCOUNTS {
        let account = store.accounts().create("throughput").await?.id;
        let credits = Credits::from_thousandths(1_000_000_000);
        store
            .accounts()
            .credit(&account, credits, &random_token()?)
            .await?;
        accounts.push(account);
    }
    Ok(accounts)
}

/// Claims whatever is due and settles it at once.
async fn work(store: Store) -> Result<(), Failed> {
    loop {
        store.tasks().report_worker("throughput", 10_000).await?;
        let claims = store.tasks().claim("throughput", 64, &[]).await?;
        if claims.is_empty() {
            // Other creates of this process wake it; a job that came between two looks would wait otherwise.
            let _ = tokio::time::timeout(Duration::from_millis(100), store.job_added()).await;
        }
        let settled = claims.iter().map(|claim| succeed(&store, claim));
        join_all(settled)
            .await
            .into_iter()
            .collect::<Result<Vec<_>, _>>()?;
    }
}

/// The end of a task that had nothing to do.
pub(crate) async fn succeed(store: &Store, claim: &Claim) -> Result<(), Failed> {
    let file = ResultFile {
        name: random_token()?,
        sha256: "0".repeat(64),
        size_bytes: 1,
        width: 1,
        height: 1,
        preview: None,
        look: None,
    };
    let settlement = Settlement::Succeeded(file);
    let (task, attempt) = (&claim.task_id, claim.attempt);
    store
        .tasks()
        .settle(task, attempt, settlement, Spent::slot(0.1))
        .await?;
    Ok(())
}

/// Counted and created, as the API does; none when a limit refused it.
pub(crate) async fn create(store: &Store, account: &AccountId) -> Result<Option<TaskId>, Failed> {
    let key = IdempotencyKey::parse(random_token()?.as_bytes())?;
    let task = NewTask {
        source_url: SourceUrl::parse("https://pictures.example.org/a.png")?,
        parameters: Parameters::at(Scale::X2),
    };
    store.accounts().count_create_request(account).await?;
    Ok(
        match store
            .tasks()
            .create(account, &key, &task, &RequestId::random()?)
            .await?
        {
            CreateOutcome::Created(task) => Some(task.id),
            CreateOutcome::ActiveLimit { .. } => None,
            other => return Err(format!("not accepted: {other:?}").into()),
        },
    )
}

type Created = (Vec<Duration>, Vec<(AccountId, TaskId)>);

async fn as_many_as_possible(store: &Store, accounts: &[AccountId]) -> Result<Created, Failed> {
    let until = Instant::now() + Duration::from_secs(LOAD_SECONDS);
    let mut clients = JoinSet::new();
    for client in 0..IN_FLIGHT {
        let (store, accounts) = (store.clone(), accounts.to_vec());
        clients.spawn(async move {
            let (mut took, mut tasks) = (Vec::new(), Vec::new());
            for account in accounts.iter().cycle().skip(client) {
                if Instant::now() > until {
                    break;
                }
                let one = Instant::now();
                if let Some(task) = create(&store, account).await? {
                    took.push(one.elapsed());
                    tasks.push((*account, task));
                }
            }
            Ok::<Created, Failed>((took, tasks))
        });
    }
    let (mut took, mut tasks) = (Vec::new(), Vec::new());
    while let Some(client) = clients.join_next().await {
        let (more, created) = client??;
        took.extend(more);
        tasks.extend(created);
    }
    Ok((took, tasks))
}

/// Starts one call after the other at this rate, whether or not the last has been answered; sorted.
async fn paced<F>(a_second: u32, call: impl Fn(usize) -> F) -> Result<Vec<Duration>, Failed>
where
    F: Future<Output = Result<(), Failed>> + Send + 'static,
{
    let mut tick = interval(Duration::from_secs(1) / a_second);
    let mut calls = JoinSet::new();
    for n in 0..a_second as usize * LOAD_SECONDS as usize {
        tick.tick().await;
        let one = call(n);
        calls.spawn(async move {
            let began = Instant::now();
            one.await.map(|()| began.elapsed())
        });
    }
    let mut took = Vec::new();
    while let Some(one) = calls.join_next().await {
        took.push(one??);
    }
    took.sort_unstable();
    Ok(took)
}

pub(crate) fn report(what: &str, sorted: &[Duration], seconds: u64) {
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "{what}: {}/s, p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
        sorted.len() as u64 / seconds,
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
