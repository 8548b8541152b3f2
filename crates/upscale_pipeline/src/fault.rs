//! Misdeeds that a child commits on order, in debug builds only, so that tests see each limit of its sandbox and the output
//! check at work. The order comes in the environment, which the service fills and no stranger can.

use std::{
    fs::File,
    hint::black_box,
    net::{Ipv4Addr, TcpStream},
    thread,
    time::Duration,
};

use upscale_core::Rows;

use crate::Rung;

/// Names the misdeed.
pub const VARIABLE: &str = "UPSCALE_CHILD_FAULT";
/// More threads than the processor time was reckoned for.
const SPINNERS: usize = 8;
const CHUNK_BYTES: usize = 64 << 20;
/// What follows the name of a fault of kernels that the plain ones have, too.
const BOTH_RUNGS: &str = "-always";
/// Rows, and samples of each, that `tile` leaves out.
const TILE: (std::ops::Range<usize>, std::ops::Range<usize>) = (64..128, 192..384);
/// Samples by which `shifted` moves a row: a source pixel of three channels at 2x.
const SHIFT: usize = 6;

/// Does what the environment says, if it says anything.
pub(crate) fn commit() {
    match std::env::var(VARIABLE).as_deref() {
        Ok("memory") => {
            let mut held = Vec::new();
            loop {
                held.push(black_box(vec![1u8; CHUNK_BYTES]));
            }
        }
        Ok("cpu") => thread::scope(|scope| {
            for _ in 0..SPINNERS {
                scope.spawn(|| {
                    loop {
                        black_box(());
                    }
                });
            }
        }),
        Ok("hang") => thread::sleep(Duration::from_secs(3_600)),
        Ok("system-call") => drop(std::env::current_dir()),
        Ok("file") => drop(File::open("/etc/hostname")),
        Ok("socket") => drop(TcpStream::connect((Ipv4Addr::LOCALHOST, 9))),
        Ok("abort") => std::process::abort(),
        _ => {}
    }
}

/// The rows of colour as kernels with a fault would have made them, if the environment orders one.
pub(crate) fn spoil<'a>(rows: Rows<'a>, rung: Rung, spoilt: &'a mut Vec<f32>) -> Rows<'a> {
    let order = std::env::var(VARIABLE).unwrap_or_default();
    let name = match order.strip_suffix(BOTH_RUNGS) {
        Some(name) => name,
        None if rung == Rung::Fast => &order,
        None => return rows,
    };
    let spoil: fn(usize, &mut [f32]) = match name {
        "nan" => |_, row| row[0] = f32::NAN,
        "flat" => |_, row| row.fill(0.5),
        "shifted" => |_, row| row.rotate_left(SHIFT),
        "tile" => |y, row| {
            if TILE.0.contains(&y) {
                row[TILE.1].fill(0.0);
            }
        },
        _ => return rows,
    };
    spoilt.clear();
    spoilt.extend_from_slice(rows.samples);
    for (index, row) in spoilt.chunks_exact_mut(rows.row_samples).enumerate() {
        spoil(rows.first_row + index, row);
    }
    Rows {
        samples: spoilt,
        ..rows
    }
}
