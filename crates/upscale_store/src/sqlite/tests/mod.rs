//! What is particular to the one file: who may read it, full disks, held locks.

mod file;
mod panics;
