//! How many cores an image gets: all of them when it is alone (its customer waits less), one when there are as many
//! images as cores (nothing is lost to threads that wait for each other). Between the two, equal shares.

/// Slots that one image holds while it is computed, its own among them: an equal share of all `slots` among the
/// `images` that hold one now, this one included, but never more than the `free` ones beside its own. Slots are never
/// taken from someone, so the sum over all images is at most `slots`.
#[must_use]
pub fn slots_of_image(slots: u32, images: u32, free: u32) -> u32 {
    (slots / images.max(1)).clamp(1, free.saturating_add(1))
}

/// Threads for an image that holds `held` of `slots` slots on a machine of so many `cores`; at least 1.
#[must_use]
pub fn threads_of_slots(cores: u32, slots: u32, held: u32) -> u32 {
    let threads = u64::from(cores) * u64::from(held) / u64::from(slots.max(1));
    u32::try_from(threads).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_alone_gets_all_cores_and_many_get_one_each() {
        for cores in [1, 2, 3, 16] {
            let alone = slots_of_image(cores, 1, cores - 1);
            assert_eq!(threads_of_slots(cores, cores, alone), cores);
            let crowded = slots_of_image(cores, cores, 0);
            assert_eq!(threads_of_slots(cores, cores, crowded), 1);
        }
    }

    #[test]
    fn images_that_start_one_after_another_never_hold_more_slots_than_there_are() {
        for slots in 1..20 {
            for images in 1..=slots {
                // All hold their own slot; each widens in its turn.
                let mut free = slots - images;
                let mut held = 0;
                for _ in 0..images {
                    let taken = slots_of_image(slots, images, free);
                    assert!(taken >= 1 && taken <= slots / images);
                    free -= taken - 1;
                    held += taken;
                }
                assert_eq!(held + free, slots);
                assert!(
                    held * 2 > slots,
                    "{images} images leave most of {slots} idle"
                );
            }
        }
    }

    #[test]
    fn slots_that_are_not_as_many_as_cores_share_them() {
        assert_eq!(threads_of_slots(16, 4, 1), 4);
        assert_eq!(threads_of_slots(16, 4, 4), 16);
        assert_eq!(threads_of_slots(2, 4, 1), 1);
        assert_eq!(threads_of_slots(2, 4, 4), 2);
        assert_eq!(threads_of_slots(2, 3, 2), 1);
    }
}
