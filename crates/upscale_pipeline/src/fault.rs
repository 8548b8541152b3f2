//! Faults that tests inject into a child, in debug builds only, so that tests see each limit of its sandbox and the output
//! check at work. The order comes in the environment, which the service fills and no customer can.

use std::{
    fs::File,
    hint::black_box,
    net::{Ipv4Addr, TcpStream},
    thread,
};

use upscale_core::Rows;

use crate::{FallbackLevel, sandbox::give_memory_back};

/// Names the injected fault.
pub const VARIABLE: &str = "UPSCALE_CHILD_FAULT";
/// More threads than the processor time was reckoned for.
const SPINNERS: usize = 8;
/// Begins the order of a single system call.
pub const CALL: &str = "call ";
/// The exit status after a call that the kernel did.
pub const CALL_DONE: i32 = 9;
/// The exit status after a call that it refused and that did not end the process.
pub const CALL_REFUSED: i32 = 8;
const CHUNK_BYTES: usize = 64 << 20;
/// What follows the name of a fault of kernels that the plain ones have, too.
const BOTH_LEVELS: &str = "-always";
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
        Ok("hang") => loop {
            thread::park();
        },
        Ok("stack") => descend(black_box(0)),
        Ok("system-call") => drop(std::env::current_dir()),
        Ok("file") => drop(File::open("/etc/hostname")),
        Ok("socket") => drop(TcpStream::connect((Ipv4Addr::LOCALHOST, 9))),
        Ok("abort") => std::process::abort(),
        // No fault: the picture is to succeed all the same.
        Ok("give-memory-back") => {
            let _ = thread::spawn(give_memory_back).join();
        }
        Ok(order) => {
            if let Some(call) = order.strip_prefix(CALL) {
                make_call(call);
            }
        }
        Err(_) => {}
    }
}

/// Deeper than any stack.
#[allow(
    unconditional_recursion,
    reason = "an injected fault: the stack is to overflow"
)]
fn descend(depth: u64) {
    let frame = black_box([depth; 64]);
    descend(frame[0] + 1);
    black_box(frame);
}

/// Makes one system call, `NUMBER ARGUMENT…`, and ends with what it returned: in a sandbox that holds it never gets there,
/// or returns an error. An argument is a number, `self`, `parent`, `buffer` (the address of 4 KiB) or `text=…` (the address
/// of that text).
#[allow(
    unsafe_code,
    reason = "a debug build's injected fault: what no safe wrapper would do is its very purpose"
)]
fn make_call(order: &str) {
    let mut words = order.split_ascii_whitespace().map(argument);
    let number = words.next().unwrap_or(-1);
    let mut arguments = [0; 6];
    for (place, word) in arguments.iter_mut().zip(words) {
        *place = word;
    }
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: pointers among the arguments are to memory that is never freed, large enough for what the tests ask for;
    // the process ends right after, and whatever the kernel does to it is what is looked for.
    let returned = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    let error = std::io::Error::last_os_error();
    if returned == -1 {
        eprintln!("the injected call was refused: {error}");
        std::process::exit(CALL_REFUSED);
    }
    eprintln!("the injected call returned {returned}");
    std::process::exit(CALL_DONE);
}

fn argument(word: &str) -> i64 {
    let address = |bytes: Vec<u8>| bytes.leak().as_ptr() as i64;
    match word {
        "self" => std::process::id().into(),
        "parent" => std::os::unix::process::parent_id().into(),
        "buffer" => address(vec![0; 4_096]),
        _ => match word.strip_prefix("text=") {
            Some(text) => address([text.as_bytes(), &[0]].concat()),
            None => word.parse().unwrap_or(0),
        },
    }
}

/// The rows of colour as kernels with a fault would have made them, if the environment orders one.
pub(crate) fn spoil<'a>(
    rows: Rows<'a>,
    level: FallbackLevel,
    spoilt: &'a mut Vec<f32>,
) -> Rows<'a> {
    let order = std::env::var(VARIABLE).unwrap_or_default();
    let name = match order.strip_suffix(BOTH_LEVELS) {
        Some(name) => name,
        None if level == FallbackLevel::Fast => &order,
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
