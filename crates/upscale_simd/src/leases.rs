//! Rows of numbers that several threads read and write at the same time, safely: a thread takes a lease on
//! rows to read, or on one segment of a row to write, and a lease that would overlap another's is refused
//! by a panic. The schedule never asks for such a one; the check costs two atomic steps per row of a task.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::{Buffer, discard};

/// Segments that share a state: each has a bit in it.
const SEGMENTS: usize = 48;
/// The other bits of a state count the readers.
const READERS: u64 = 0xffff;
/// More are refused: far below what the bits hold, so that no attempt can reach a writer's bit.
const READERS_MAX: u64 = 0x7fff;

/// Rows of equal length, each `lead` numbers that no one writes, then segments, then what is left over.
pub struct SharedRows {
    memory: UnsafeCell<Buffer>,
    /// For every row, one for each 48 segments.
    states: Vec<AtomicU64>,
    states_per_row: usize,
    row_len: usize,
    lead: usize,
    segment_len: usize,
}

// SAFETY: the memory is reached through leases only, and the states keep writers apart from all others.
unsafe impl Sync for SharedRows {}

/// Consecutive rows, readable until dropped.
pub struct ReadLease<'a> {
    states: &'a [AtomicU64],
    numbers: &'a [f32],
}

/// A segment of one row, writable until dropped.
pub struct WriteLease<'a> {
    state: &'a AtomicU64,
    bit: u64,
    numbers: &'a mut [f32],
}

impl SharedRows {
    /// Zeroed rows. The segments of a row, each `segment_len` long, begin at `lead`; the last may be shorter.
    pub fn new(rows: usize, row_len: usize, lead: usize, segment_len: usize) -> Self {
        assert!(lead <= row_len, "a row is shorter than its lead");
        let segments = (row_len - lead).div_ceil(segment_len);
        let states_per_row = segments.div_ceil(SEGMENTS);
        let states = (0..rows * states_per_row).map(|_| AtomicU64::new(0));
        Self {
            memory: UnsafeCell::new(Buffer::zeroed(rows.saturating_mul(row_len))),
            states: states.collect(),
            states_per_row,
            row_len,
            lead,
            segment_len,
        }
    }

    /// Where a row begins, to fetch it ahead: no one may read there without a lease.
    #[inline]
    pub(crate) fn address(&self, row: usize) -> *const f32 {
        // SAFETY: the buffer itself is never changed, only the numbers in it.
        let first = unsafe { (*self.memory.get()).as_ptr() };
        first.wrapping_add(row * self.row_len)
    }

    /// Leases rows as one slice.
    #[inline]
    pub fn read(&self, rows: Range<usize>) -> ReadLease<'_> {
        let states = &self.states[rows.start * self.states_per_row..rows.end * self.states_per_row];
        for state in states {
            let before = state.fetch_add(1, Ordering::Acquire);
            let is_free = before < READERS_MAX;
            if !is_free {
                state.fetch_sub(1, Ordering::Release);
            }
            assert!(is_free, "a row is read while it is written");
        }
        let (start, count) = (rows.start * self.row_len, rows.len() * self.row_len);
        // SAFETY: in bounds, as every row has a state; no row is being written, and none will be before the
        // lease is dropped.
        let numbers = unsafe {
            let first = (*self.memory.get()).as_ptr().add(start);
            std::slice::from_raw_parts(first, count)
        };
        ReadLease { states, numbers }
    }

    /// Leases one segment of one row.
    #[inline]
    pub fn write(&self, row: usize, segment: usize) -> WriteLease<'_> {
        // Saturating: an overflow would come round to numbers of another segment.
        let start = segment.saturating_mul(self.segment_len);
        let start = start.saturating_add(self.lead);
        let end = start.saturating_add(self.segment_len).min(self.row_len);
        assert!(start < end, "a segment lies outside its row");
        let bit = 1 << (16 + segment % SEGMENTS);
        let state = &self.states[row * self.states_per_row + segment / SEGMENTS];
        let before = state.fetch_or(bit, Ordering::Acquire);
        let free = before & (READERS | bit) == 0;
        assert!(free, "a row is written while it is read, or twice at once");
        // SAFETY: in bounds by the assertion and the index into `states`. No reader has the segment, no one
        // else writes it, and no two segments overlap.
        let numbers = unsafe {
            let first = (*self.memory.get()).as_ptr().cast_mut();
            std::slice::from_raw_parts_mut(first.add(row * self.row_len + start), end - start)
        };
        WriteLease {
            state,
            bit,
            numbers,
        }
    }

    /// Gives the memory of rows that no one reads again back to the system, in whole pages: what lay there is gone.
    pub fn discard(&self, rows: Range<usize>) {
        let states = &self.states[rows.start * self.states_per_row..rows.end * self.states_per_row];
        for state in states {
            let before = state.fetch_or(!READERS, Ordering::Acquire);
            assert!(
                before == 0,
                "a row is discarded while it is read or written"
            );
        }
        let (start, count) = (rows.start * self.row_len, rows.len() * self.row_len);
        // SAFETY: in bounds, as every row has a state; no one else reads or writes these rows before their states are free
        // again.
        discard(unsafe {
            let first = (*self.memory.get()).as_ptr().cast_mut();
            std::slice::from_raw_parts_mut(first.add(start), count)
        });
        for state in states {
            state.fetch_and(READERS, Ordering::Release);
        }
    }
}

impl Deref for ReadLease<'_> {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        self.numbers
    }
}

impl Drop for ReadLease<'_> {
    #[inline]
    fn drop(&mut self) {
        for state in self.states {
            state.fetch_sub(1, Ordering::Release);
        }
    }
}

impl Deref for WriteLease<'_> {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        self.numbers
    }
}

impl DerefMut for WriteLease<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32] {
        self.numbers
    }
}

impl Drop for WriteLease<'_> {
    #[inline]
    fn drop(&mut self) {
        self.state.fetch_and(!self.bit, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(attempt: impl FnOnce() + std::panic::UnwindSafe) -> bool {
        std::panic::catch_unwind(attempt).is_err()
    }

    #[test]
    fn segments_cover_the_row_behind_the_lead_once() {
        let rows = SharedRows::new(2, 11, 2, 4);
        for (segment, value) in [(0, 1.0), (1, 2.0), (2, 3.0)] {
            rows.write(1, segment).fill(value);
        }
        let expected = [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 3.0];
        assert_eq!(rows.read(0..2)[11..], expected);
    }

    fn two_rows() -> std::panic::AssertUnwindSafe<SharedRows> {
        std::panic::AssertUnwindSafe(SharedRows::new(2, 8, 0, 4))
    }

    #[test]
    fn leases_that_do_not_overlap_are_granted() {
        let rows = two_rows();
        let writing = rows.write(0, 0);
        drop(rows.write(0, 1));
        drop(rows.read(1..2));
        drop(writing);
        let _reading = rows.read(0..2);
        drop(rows.read(0..1));
    }

    #[test]
    fn leases_that_overlap_are_refused() {
        let rows = two_rows();
        let _writing = rows.write(0, 0);
        assert!(refused(|| drop(rows.write(0, 0))));
        assert!(refused(|| drop(rows.read(0..1))));
        let rows = two_rows();
        let _reading = rows.read(0..2);
        assert!(refused(|| drop(rows.write(1, 1))));
    }

    #[test]
    fn rows_that_are_discarded_leave_the_others_as_they_are() {
        let rows = SharedRows::new(3, 50_000, 0, 50_000);
        for row in 0..3 {
            rows.write(row, 0).fill(1.0 + row as f32);
        }
        rows.discard(1..2);
        let expected = |row: usize| vec![1.0 + row as f32; 50_000];
        assert_eq!(
            [rows.read(0..1), rows.read(2..3)].map(|row| row.to_vec()),
            [expected(0), expected(2)]
        );
        rows.write(1, 0).fill(5.0);
        assert_eq!(rows.read(1..2)[..], [5.0; 50_000]);
        let rows = two_rows();
        let _reading = rows.read(1..2);
        assert!(refused(|| rows.discard(0..2)));
    }

    #[test]
    fn a_segment_outside_the_row_is_refused() {
        let rows = two_rows();
        assert!(refused(|| drop(rows.write(0, 2))));
    }
}
