//! In whose name an operator's change is made, and why: what the store keeps with it.

use upscale_core::limits::NAME_CHARS_MAX;
use upscale_store::OnBehalf;

/// Who and why; without a name, this machine's user.
pub(crate) fn on_behalf(reason: &str, operator: Option<&str>) -> OnBehalf {
    let user = || {
        std::env::var("USER")
            .ok()
            .filter(|user| !user.trim().is_empty())
    };
    let operator = operator.map(str::to_owned).or_else(user);
    let operator = operator.unwrap_or_else(|| "the command line".to_owned());
    OnBehalf {
        operator: operator.chars().take(NAME_CHARS_MAX).collect(),
        reason: reason.to_owned(),
    }
}
