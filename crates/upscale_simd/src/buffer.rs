//! Memory for numbers: zeroed, aligned to a cache line, on huge pages where the system gives them.

use std::ops::{Deref, DerefMut};

/// A cache line, and the widest vector, in bytes.
const LINE: usize = 64;
/// x86-64's and ARM's usual huge page.
const HUGE_PAGE: usize = 2 << 20;
/// The largest usual page that is not a huge one.
const PAGE: usize = 64 << 10;
/// Buffers from this size on begin with a huge page and are filled up to whole ones. At an eighth of one, the 300 KB that
/// each of 20 layers' weights take cost 40 MB to clear: 4 ms of a small picture's 33.
const HUGE_FROM: usize = HUGE_PAGE / 2;

/// A fixed count of numbers, 0 at first.
pub struct Buffer {
    all: Vec<f32>,
    first: usize,
    count: usize,
}

impl Buffer {
    /// Zeros; memory that is not there ends the process, as everywhere.
    #[must_use]
    pub fn zeroed(count: usize) -> Self {
        let (size, align) = match count * size_of::<f32>() {
            bytes if bytes < HUGE_FROM => (bytes, LINE),
            bytes => (bytes.next_multiple_of(HUGE_PAGE), HUGE_PAGE),
        };
        // Large zeroed vectors are fresh pages of the system: none is touched until it is used.
        let all = vec![0.0; (size + align) / size_of::<f32>()];
        let first = all
            .as_ptr()
            .align_offset(align)
            .min(align / size_of::<f32>());
        if align == HUGE_PAGE {
            advise_huge(&all[first..first + size / size_of::<f32>()]);
        }
        Self { all, first, count }
    }
}

impl Deref for Buffer {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        &self.all[self.first..self.first + self.count]
    }
}

impl DerefMut for Buffer {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.all[self.first..self.first + self.count]
    }
}

/// Huge pages save most translation misses of 64 streams at once; without them all still works.
#[cfg(target_os = "linux")]
fn advise_huge(pages: &[f32]) {
    let first = pages.as_ptr().cast_mut().cast();
    // SAFETY: the range lies within one allocation; the advice changes no content and may fail harmlessly.
    unsafe { libc::madvise(first, size_of_val(pages), libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_pages: &[f32]) {}

/// Gives the memory of a buffer's numbers back to the system, in whole pages; which of them are zero then and which are as
/// they were is not said.
pub(crate) fn discard(numbers: &mut [f32]) {
    let page = PAGE / size_of::<f32>();
    let first = numbers.as_ptr().align_offset(PAGE).min(numbers.len());
    let whole = (numbers.len() - first) / page * page;
    discard_pages(&mut numbers[first..first + whole]);
}

#[cfg(target_os = "linux")]
fn discard_pages(pages: &mut [f32]) {
    let first = pages.as_mut_ptr().cast();
    // SAFETY: whole pages of one allocation of this process, borrowed for writing; they are zeros from then on, which are
    // numbers, and where the advice fails they stay as they were.
    unsafe { libc::madvise(first, size_of_val(pages), libc::MADV_DONTNEED) };
}

#[cfg(not(target_os = "linux"))]
fn discard_pages(_pages: &mut [f32]) {}
