//! `UPSCALE_CPU`: which kernels to run in place of the fastest that the CPU has.

use anyhow::{anyhow, bail};
use upscale_engine::KernelSet;

/// The variable's name.
pub(crate) const VARIABLE: &str = "UPSCALE_CPU";

/// The set that the environment asks for; none when it asks for nothing.
///
/// # Errors
/// When it names no set, and then which ones there are.
pub(crate) fn from_environment() -> anyhow::Result<Option<KernelSet>> {
    let name = match std::env::var(VARIABLE) {
        Ok(name) => name,
        Err(std::env::VarError::NotPresent) => return Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => bail!("{VARIABLE} is no text"),
    };
    let set = KernelSet::parse(&name).ok_or_else(|| {
        let names = KernelSet::ALL.map(KernelSet::name).join(", ");
        anyhow!("{VARIABLE}={name}: expected one of {names}")
    })?;
    Ok(Some(set))
}
