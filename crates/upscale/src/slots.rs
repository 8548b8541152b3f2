//! How many images a process works on at a time: as many as it has cores, and no more than fit into its memory.

use crate::{args::WorkArgs, memory::memory_limit, threads::threads};

/// What the largest legal image takes while it is worked on: 410 MB in its child (16 bits, noise and transparency at 2x,
/// docs/sizing.md), 20 MiB of source and up to 100 MB of result in the service.
pub(crate) const SLOT_BYTES: u64 = 512 << 20;
/// The service itself, busy.
pub(crate) const SERVICE_BYTES: u64 = 128 << 20;

/// How many, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slots {
    pub(crate) count: u32,
    /// Reason for the count, a sentence for the log and `doctor`.
    pub(crate) why: String,
    /// Whether all of them at work may need more memory than there is.
    pub(crate) is_too_many: bool,
}

/// As `--workers` says, or as many as cores and memory allow; `model_bytes` is what an operator's model takes beside an
/// image.
pub(crate) fn slots(args: &WorkArgs, model_bytes: u64) -> Slots {
    let limit = memory_limit();
    let cores = u32::try_from(threads(None)).unwrap_or(u32::MAX);
    choose(args.workers, cores, limit.bytes, model_bytes, &limit.set_by)
}

fn choose(
    asked: Option<u32>,
    cores: u32,
    limit_bytes: u64,
    model_bytes: u64,
    set_by: &str,
) -> Slots {
    let need = SLOT_BYTES + model_bytes;
    let fit = limit_bytes.saturating_sub(SERVICE_BYTES) / need;
    let fit = u32::try_from(fit).unwrap_or(u32::MAX);
    let memory = format!(
        "{} MiB of memory ({set_by}) hold {fit} images of {} MiB beside the service",
        limit_bytes >> 20,
        need >> 20
    );
    let count = asked.unwrap_or(cores.min(fit).max(1));
    let why = match asked {
        Some(_) => format!("--workers; {cores} cores, {memory}"),
        None if fit < cores => format!("{memory}; {cores} cores"),
        None => format!("one for each core; {memory}"),
    };
    Slots {
        count,
        why,
        is_too_many: count > fit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_scarcer_of_cores_and_memory_decides() {
        for (cores, limit_bytes, model_bytes, expected) in [
            (2, 24 * GIB, 0, 2),
            (32, 2 * GIB, 0, 3),
            (32, 64 * GIB, 0, 32),
            (32, 2 * GIB, GIB, 1),
            (8, u64::MAX, 0, 8),
        ] {
            let slots = choose(None, cores, limit_bytes, model_bytes, "a test");
            assert_eq!(slots.count, expected, "{slots:?}");
            assert!(
                !slots.is_too_many && slots.why.contains("a test"),
                "{slots:?}"
            );
        }
    }

    #[test]
    fn there_is_always_one_and_the_operator_has_the_last_word() {
        let small = choose(None, 4, 256 << 20, 0, "a test");
        assert!(small.count == 1 && small.is_too_many, "{small:?}");
        let asked = choose(Some(32), 4, 2 * GIB, 0, "a test");
        assert!(asked.count == 32 && asked.is_too_many, "{asked:?}");
        let none = choose(Some(0), 4, 2 * GIB, 0, "a test");
        assert!(none.count == 0 && !none.is_too_many, "{none:?}");
    }
}
