//! Vectors of one instruction set each, behind tokens that prove the CPU has it; the matrix product that all networks
//! come down to; and memory that threads share. What is computed with them is said elsewhere: this crate knows no
//! network and no picture.
//!
//! With the program's sandbox it is the only place where `unsafe` may stand. Its public functions are safe: none of
//! them can be called so that memory is touched that is not the caller's, whatever the arguments.
//!
//! A [`Computation`] is written once, over [`Lanes`]; [`Kernels::call`] runs it compiled for the set that was found.

#![allow(
    unsafe_code,
    reason = "intrinsics, and memory that threads share by leases checked at run time"
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod block;
mod buffer;
mod denormals;
mod gemm;
mod kernels;
mod lanes;
mod leases;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod tiles;

pub use buffer::Buffer;
pub use denormals::FlushDenormals;
pub use gemm::{
    Ahead, Beside, CHANNEL_UNIT, Input, Output, Start, Weights, multiply_in_place, multiply_into,
};
pub use kernels::{InstructionSet, Kernels, widest};
pub use lanes::{Computation, Lanes};
pub use leases::{ReadLease, SharedRows, WriteLease};
pub use portable::Portable;
pub use tiles::{
    BLOCKS_MAX, ByteRows, Joined, Line, PIXEL_UNIT, Packing, SPLIT_MAX, SplitRows, SplitWeights,
    Tiles, Weight, packed_pitch, unpack,
};
