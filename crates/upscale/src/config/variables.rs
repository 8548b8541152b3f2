//! `UPSCALE_…` variables: which flags have none, and which that are set mean nothing.

use std::collections::BTreeSet;

/// Flags of one call, or whose names say nothing of this program: a variable of such a name belongs to another script, and
/// would act on every later call.
const WITHOUT: [&str; 34] = [
    "account",
    "commercial",
    "connections",
    "credit",
    "csv",
    "forget-second-factor",
    "format",
    "golden",
    "hold",
    "key",
    "licence",
    "limit",
    "list",
    "name",
    "network",
    "open",
    "out",
    "overlap",
    "overwrite",
    "permission",
    "quality-jpeg",
    "reason",
    "recursive",
    "reference",
    "refuse-old-links",
    "refused",
    "resize",
    "runs",
    "scale",
    "search",
    "seconds",
    "size",
    "skip-existing",
    "source",
];
/// Variables that are no flag's.
const BESIDE_FLAGS: [&str; 5] = [
    "UPSCALE_ADMIN_TOKEN",
    "UPSCALE_STRIPE_SECRET_KEY",
    "UPSCALE_STRIPE_WEBHOOK_SECRET",
    "UPSCALE_CHILD_FAULT",
    "UPSCALE_CPU",
];
/// Of tests and checks.
const OF_TESTS: &str = "UPSCALE_TEST_";

/// The variable of a long flag, if it has one.
pub(super) fn variable(flag: &str) -> Option<String> {
    let is_plain = WITHOUT.contains(&flag);
    (!is_plain).then(|| format!("UPSCALE_{}", flag.replace('-', "_").to_uppercase()))
}

/// Says of each variable that is set and means nothing that it does: a name that was mistyped would be ignored otherwise.
pub(super) fn warn_of_unknown(flags: &BTreeSet<String>) {
    let given = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    for name in unknown(flags, given) {
        eprintln!("upscale: {name} is set, but no flag uses it: ignored");
    }
}

fn unknown(flags: &BTreeSet<String>, given: impl Iterator<Item = String>) -> Vec<String> {
    let known: BTreeSet<String> = flags.iter().filter_map(|flag| variable(flag)).collect();
    let is_unknown = |name: &String| {
        name.starts_with("UPSCALE_")
            && !known.contains(name)
            && !BESIDE_FLAGS.contains(&name.as_str())
            && !name.starts_with(OF_TESTS)
            && !is_of_kubernetes(name)
    };
    given.filter(is_unknown).collect()
}

/// Kubernetes sets such for each service of a pod's namespace, and one may well be called `upscale`.
fn is_of_kubernetes(name: &str) -> bool {
    name.contains("_SERVICE_") || name.contains("_PORT_") || name.ends_with("_PORT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_variable_is_told_and_those_of_others_are_not() {
        let flags = ["listen", "name", "api-key"].map(str::to_owned).into();
        let given = [
            "UPSCALE_LISTEN",
            "UPSCALE_LISTTEN",
            "UPSCALE_NAME",
            "UPSCALE_API_KEY",
            "UPSCALE_ADMIN_TOKEN",
            "UPSCALE_TEST_DATA",
            "UPSCALE_SERVICE_HOST",
            "UPSCALE_PORT_8080_TCP",
            "UPSCALER",
            "HOME",
        ];
        let given = given.map(str::to_owned).into_iter();
        assert_eq!(unknown(&flags, given), ["UPSCALE_LISTTEN", "UPSCALE_NAME"]);
    }
}
