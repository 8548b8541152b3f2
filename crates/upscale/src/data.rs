//! The data directory as all commands use it: where the database and the result files stand in it, and a small
//! runtime to ask them.

use std::{future::Future, path::Path};

use anyhow::{Context, bail};
use upscale_core::{AccountId, Clock, KeyId};
use upscale_store::{Results, Store, StoreOptions};

/// Result files stand in this folder of the data directory.
const RESULTS_FOLDER: &str = "results";

/// Database and result files.
pub(crate) struct Data {
    pub(crate) store: Store,
    pub(crate) results: Results,
}

impl Data {
    /// Opens the directory and makes what is missing.
    pub(crate) async fn open(directory: &Path, options: StoreOptions) -> anyhow::Result<Self> {
        let shown = || format!("the data directory {}", directory.display());
        let store = Store::open_sqlite(directory, Clock::System, options)
            .await
            .with_context(shown)?;
        let results = Results::local(&directory.join(RESULTS_FOLDER)).with_context(shown)?;
        Ok(Self { store, results })
    }

    /// Opens a directory that must be there: a mistyped path must not answer as an empty service would.
    pub(crate) async fn open_existing(directory: &Path) -> anyhow::Result<Self> {
        if !directory.is_dir() {
            bail!(
                "there is no data directory {}: `serve` and `account create` make one",
                directory.display()
            );
        }
        Self::open(directory, StoreOptions::default()).await
    }
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
