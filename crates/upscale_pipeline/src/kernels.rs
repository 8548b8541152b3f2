//! `UPSCALE_CPU`: which kernels to run in place of the fastest that the CPU has.

use std::env::{VarError, var};

use upscale_engine::KernelSet;

/// Environment variable that limits the instruction set.
pub const VARIABLE: &str = "UPSCALE_CPU";

/// Why the environment chooses no kernels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelsError {
    /// Its bytes are no UTF-8.
    #[error("{VARIABLE} is not valid UTF-8")]
    NotText,
    /// There is no set of this name.
    #[error("{VARIABLE}={0}: expected one of {names}", names = KernelSet::ALL.map(KernelSet::name).join(", "))]
    Unknown(String),
}

/// The set that the environment asks for; none when it asks for nothing.
///
/// # Errors
/// When it names no set, and then which ones there are.
pub fn from_environment() -> Result<Option<KernelSet>, KernelsError> {
    let name = match var(VARIABLE) {
        Ok(name) => name,
        Err(VarError::NotPresent) => return Ok(None),
        Err(VarError::NotUnicode(_)) => return Err(KernelsError::NotText),
    };
    let set = KernelSet::parse(&name);
    set.map(Some).ok_or(KernelsError::Unknown(name))
}
