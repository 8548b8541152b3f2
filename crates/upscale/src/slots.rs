//! How many images a process works on at a time: as many as it has cores, and no more than fit into its memory. Where they are
//! fewer than cores, so many that the threads of each share a last-level cache.

use upscale_core::Domains;

use crate::{args::WorkArgs, memory::memory_limit, topology::domains};

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
    let memory = (limit.bytes, limit.set_by.as_str());
    choose(args.workers, &domains(), memory, model_bytes)
}

fn choose(
    asked: Option<u32>,
    domains: &Domains,
    (limit_bytes, set_by): (u64, &str),
    model_bytes: u64,
) -> Slots {
    let cores = domains.cores();
    let need = SLOT_BYTES + model_bytes;
    let fit = limit_bytes.saturating_sub(SERVICE_BYTES) / need;
    let fit = u32::try_from(fit).unwrap_or(u32::MAX);
    let memory = format!(
        "{} MiB of memory ({set_by}) hold {fit} images of {} MiB beside the service",
        limit_bytes >> 20,
        need >> 20
    );
    let count = asked.unwrap_or_else(|| domains.images(fit));
    let groups = domains.count();
    let why = match asked {
        Some(_) => format!("--workers; {cores} cores, {memory}"),
        None if fit < cores && groups > 1 => {
            format!("{memory}; {cores} cores in {groups} groups that share a cache")
        }
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

    fn one(cores: u32) -> Domains {
        Domains::new(vec![cores])
    }

    #[test]
    fn the_scarcer_of_cores_and_memory_decides() {
        for (cores, limit_bytes, model_bytes, expected) in [
            (2, 24 * GIB, 0, 2),
            (32, 2 * GIB, 0, 3),
            (32, 64 * GIB, 0, 32),
            (32, 2 * GIB, GIB, 1),
            (8, u64::MAX, 0, 8),
            // Four images of two threads leave no core idle, five of one leave three.
            (8, 3 * GIB, 0, 4),
        ] {
            let slots = choose(None, &one(cores), (limit_bytes, "a test"), model_bytes);
            assert_eq!(slots.count, expected, "{slots:?}");
            assert!(
                !slots.is_too_many && slots.why.contains("a test"),
                "{slots:?}"
            );
        }
    }

    #[test]
    fn images_keep_to_groups_that_share_a_cache() {
        let epyc = Domains::new(vec![8; 8]);
        let slots = choose(None, &epyc, (7 * GIB, "a test"), 0);
        assert_eq!(slots.count, 8, "{slots:?}");
        assert!(slots.why.contains("64 cores in 8 groups"), "{slots:?}");
    }

    #[test]
    fn there_is_always_one_and_the_operator_has_the_last_word() {
        let small = choose(None, &one(4), (256 << 20, "a test"), 0);
        assert!(small.count == 1 && small.is_too_many, "{small:?}");
        let asked = choose(Some(32), &one(4), (2 * GIB, "a test"), 0);
        assert!(asked.count == 32 && asked.is_too_many, "{asked:?}");
        let none = choose(Some(0), &one(4), (2 * GIB, "a test"), 0);
        assert!(none.count == 0 && !none.is_too_many, "{none:?}");
    }
}
