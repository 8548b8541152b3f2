//! The service's data as all commands use it: where the database and the result files are, and a small runtime
//! to ask them.

use std::{
    fs,
    future::Future,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use upscale_core::{AccountId, Clock, KeyId, is_token};
use upscale_store::{Account, DATABASE_FILE, Results, Store, StoreOptions};

use crate::{args::LocationArgs, bucket::bucket, config::default_directory, secret_keys};

/// Result files stand in this folder of the data directory.
pub(crate) const RESULTS_FOLDER: &str = "results";

/// Lock files of this machine's workers stand in this one.
const OWNERS_FOLDER: &str = "owners";
/// The kernel's name for the time since it started: no two machines share one.
const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";

/// Database and result files.
pub(crate) struct Data {
    pub(crate) store: Store,
    pub(crate) results: Results,
    /// Folder of this machine's workers' lock files; none where there is no directory.
    pub(crate) owners: Option<PathBuf>,
}

impl Data {
    /// Opens the location and makes what is missing.
    pub(crate) async fn open(
        location: &LocationArgs,
        options: StoreOptions,
    ) -> anyhow::Result<Self> {
        let store = open_store(location, options).await?;
        if let Some(directory) = data_directory(location)
            && !store.has_reserved().await?
        {
            refuse_results_beside_nothing(directory, "has never seen a task")?;
        }
        Ok(Self {
            store,
            results: open_results(location)?,
            owners: owners_folder(location),
        })
    }

    /// Opens a location that must be there.
    pub(crate) async fn open_existing(location: &LocationArgs) -> anyhow::Result<Self> {
        check_existing(location)?;
        Self::open(location, StoreOptions::default()).await
    }
}

/// Opens the database alone, for commands that touch no result; makes the directory or the tables that are
/// missing.
pub(crate) async fn open_store(
    location: &LocationArgs,
    options: StoreOptions,
) -> anyhow::Result<Store> {
    let keys = secret_keys::read(location)?;
    let store = open_database(location, options).await?;
    Ok(match keys {
        Some(keys) => store.with_secret_keys(keys),
        None => store,
    })
}

async fn open_database(location: &LocationArgs, options: StoreOptions) -> anyhow::Result<Store> {
    if let Some(address) = &location.database {
        return Store::open_postgres(
            address,
            location.database_connections,
            Clock::System,
            options,
        )
        .await
        .context("the database of --database");
    }
    let directory = location.data.as_deref();
    let directory = directory.context("--data DIR or --database URL must say where the data is")?;
    let database = fs::metadata(directory.join(DATABASE_FILE));
    if database.map_or(0, |database| database.len()) == 0 {
        refuse_results_beside_nothing(directory, "is missing or empty")?;
    }
    Store::open_sqlite(directory, Clock::System, options)
        .await
        .with_context(|| format!("the data directory {}", directory.display()))
}

/// Opens a database that must be there: a mistyped path must not answer as an empty service would.
pub(crate) async fn open_existing_store(location: &LocationArgs) -> anyhow::Result<Store> {
    check_existing(location)?;
    open_store(location, StoreOptions::default()).await
}

/// A directory with a database is one machine's. Beside PostgreSQL several machines may share one, whose locks need not be
/// seen by all of them: each looks into a folder of its own, named after its boot. After another boot the leases decide.
fn owners_folder(location: &LocationArgs) -> Option<PathBuf> {
    let folder = location.data.as_deref()?.join(OWNERS_FOLDER);
    if location.database.is_none() {
        return Some(folder);
    }
    let boot = fs::read_to_string(BOOT_ID_FILE).ok()?;
    let boot = boot.trim();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (!boot.is_empty() && boot.bytes().all(is_plain)).then(|| folder.join(boot))
}

/// Where the database is a file: its directory.
fn data_directory(location: &LocationArgs) -> Option<&Path> {
    let directory = location.data.as_deref();
    directory.filter(|_| location.database.is_none())
}

/// Result files without the database that knows them: it was moved or lost. One that begins anew beside them would have
/// every customer and credit forgotten, and the files removed within the hour.
fn refuse_results_beside_nothing(directory: &Path, how: &str) -> anyhow::Result<()> {
    let results = directory.join(RESULTS_FOLDER);
    if !holds_results(&results) {
        return Ok(());
    }
    bail!(
        "the database {} {how}, but there are result files in {}. Put the right one back, with its -wal file if it has one (never with another database's), or restore a backup. To begin with an empty service, move {} away first",
        directory.join(DATABASE_FILE).display(),
        results.display(),
        results.display()
    )
}

fn holds_results(folder: &Path) -> bool {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .filter_map(|file| file.file_name().into_string().ok())
        .any(|name| name.strip_suffix(".png").is_some_and(is_token))
}

fn open_results(location: &LocationArgs) -> anyhow::Result<Results> {
    if let Some(results) = bucket(&location.storage)? {
        return Ok(results);
    }
    let directory = location.data.as_deref();
    let directory = directory
        .context("--data DIR or --storage s3://bucket must say where the result files are")?;
    Results::local(&directory.join(RESULTS_FOLDER))
        .with_context(|| format!("the data directory {}", directory.display()))
}

/// Whether the location was named or is there: the directory by default is made by the first `serve`.
pub(crate) fn is_in_use(location: &LocationArgs) -> bool {
    let is_named = |directory: &PathBuf| Some(directory) != default_directory().as_ref();
    let directory = location.data.as_ref();
    location.database.is_some()
        || directory.is_some_and(|directory| is_named(directory) || directory.is_dir())
}

/// A database that is not there says so itself.
fn check_existing(location: &LocationArgs) -> anyhow::Result<()> {
    if location.database.is_none()
        && let Some(directory) = &location.data
        && !directory.is_dir()
    {
        bail!(
            "the data directory {} does not exist: `serve` and `account create` create it",
            directory.display()
        );
    }
    Ok(())
}

/// Runs a command's future on this thread; the store has threads of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(4)
        .build()
        .context("the runtime did not start")?;
    runtime.block_on(future)
}

/// An account's id as an operator types it; what cannot be an id names no account.
pub(crate) fn account_id(text: &str) -> anyhow::Result<AccountId> {
    AccountId::parse(text.trim()).with_context(|| no_account(text))
}

/// The account with this id.
///
/// # Errors
/// When there is none.
pub(crate) async fn find_account(store: &Store, id: &AccountId) -> anyhow::Result<Account> {
    store
        .accounts()
        .find(id)
        .await?
        .with_context(|| no_account(id.as_str()))
}

/// A key's id; the secret itself is a likely mistake and is not repeated.
pub(crate) fn key_id(text: &str) -> anyhow::Result<KeyId> {
    if upscale_core::ApiKey::parse(text.trim()).is_some() {
        bail!("that is the secret of a key; pass its ID, which starts with key_ (see `key list`)");
    }
    KeyId::parse(text.trim()).with_context(|| format!("key {text} does not exist"))
}

pub(crate) fn no_account(text: &str) -> String {
    format!("account {text} does not exist: see `upscale account list`")
}
