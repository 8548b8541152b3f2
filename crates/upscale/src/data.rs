//! The service's data as all commands use it: where the database and the result files are, and a small runtime
//! to ask them.

use std::future::Future;

use anyhow::{Context, bail};
use upscale_core::{AccountId, Clock, KeyId};
use upscale_store::{Account, Results, Store, StoreOptions};

use crate::{args::PlaceArgs, bucket::bucket};

/// Result files stand in this folder of the data directory.
pub(crate) const RESULTS_FOLDER: &str = "results";

/// Database and result files.
pub(crate) struct Data {
    pub(crate) store: Store,
    pub(crate) results: Results,
}

impl Data {
    /// Opens the place and makes what is missing.
    pub(crate) async fn open(place: &PlaceArgs, options: StoreOptions) -> anyhow::Result<Self> {
        Ok(Self {
            store: open_store(place, options).await?,
            results: open_results(place)?,
        })
    }

    /// Opens a place that must be there.
    pub(crate) async fn open_existing(place: &PlaceArgs) -> anyhow::Result<Self> {
        check_existing(place)?;
        Self::open(place, StoreOptions::default()).await
    }
}

/// Opens the database alone, for commands that touch no result; makes the directory or the tables that are
/// missing.
pub(crate) async fn open_store(place: &PlaceArgs, options: StoreOptions) -> anyhow::Result<Store> {
    if let Some(address) = &place.database {
        return Store::open_postgres(address, place.database_connections, Clock::System, options)
            .await
            .context("the database of --database");
    }
    let directory = place.data.as_deref();
    let directory = directory.context("--data DIR or --database URL must say where the data is")?;
    Store::open_sqlite(directory, Clock::System, options)
        .await
        .with_context(|| format!("the data directory {}", directory.display()))
}

/// Opens a database that must be there: a mistyped path must not answer as an empty service would.
pub(crate) async fn open_existing_store(place: &PlaceArgs) -> anyhow::Result<Store> {
    check_existing(place)?;
    open_store(place, StoreOptions::default()).await
}

fn open_results(place: &PlaceArgs) -> anyhow::Result<Results> {
    if let Some(results) = bucket(&place.storage)? {
        return Ok(results);
    }
    let directory = place.data.as_deref();
    let directory = directory
        .context("--data DIR or --storage s3://bucket must say where the result files are")?;
    Results::local(&directory.join(RESULTS_FOLDER))
        .with_context(|| format!("the data directory {}", directory.display()))
}

/// A database that is not there says so itself.
fn check_existing(place: &PlaceArgs) -> anyhow::Result<()> {
    if place.database.is_none()
        && let Some(directory) = &place.data
        && !directory.is_dir()
    {
        bail!(
            "there is no data directory {}: `serve` and `account create` make one",
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
        bail!("that is a key's secret; its id starts with key_ (see `key list`)");
    }
    KeyId::parse(text.trim()).with_context(|| format!("there is no key {text}"))
}

pub(crate) fn no_account(text: &str) -> String {
    format!("there is no account {text}")
}
