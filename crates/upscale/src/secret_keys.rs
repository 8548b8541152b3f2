//! The key that seals the secrets in the database: read from its file, and used before the service answers anyone.

use std::{os::unix::fs::PermissionsExt, path::Path};

use anyhow::{Context, bail};
use upscale_store::{SecretKeys, Store};

use crate::args::LocationArgs;

/// Of the file of `--secret-key-file`; none where none is named.
///
/// # Errors
/// When the file cannot be read or holds something else.
pub(crate) fn read(location: &LocationArgs) -> anyhow::Result<Option<SecretKeys>> {
    let Some(path) = &location.secret_key_file else {
        return Ok(None);
    };
    let read = || -> anyhow::Result<SecretKeys> {
        Ok(SecretKeys::parse(&std::fs::read_to_string(path)?)?)
    };
    let keys = read().with_context(|| format!("the secret key in {}", path.display()))?;
    Ok(Some(keys))
}

/// Whether every user of the machine can read the file.
pub(crate) fn is_exposed(path: &Path) -> bool {
    let is_readable = |mode: u32| mode & 0o004 != 0;
    std::fs::metadata(path).is_ok_and(|file| is_readable(file.permissions().mode()))
}

/// Seals what is in plain text or under an older key, where there is a key.
///
/// # Errors
/// When a secret is sealed and does not open: neither second factors nor result links would work.
pub(crate) async fn seal(store: &Store, location: &LocationArgs) -> anyhow::Result<()> {
    if let Some(why) = store.secrets_report().await?.unreadable {
        bail!(why);
    }
    if let Some(path) = location
        .secret_key_file
        .as_deref()
        .filter(|path| is_exposed(path))
    {
        let path = path.display();
        tracing::warn!(%path, "every user of this machine can read the secret key: chmod 600");
    }
    let sealed = store.seal_secrets().await?;
    if sealed.secrets > 0 {
        tracing::info!(
            secrets = sealed.secrets,
            "secrets of the database were sealed"
        );
    }
    if let Some(why) = sealed.traces {
        tracing::error!(
            why,
            "what was sealed may still be readable in free pages of the database: see `Secrets` in operating.md"
        );
    }
    Ok(())
}
