//! What is particular to the one file: several processes on it, faults at every statement and commit, full
//! disks, held locks, and a model that runs beside it.

mod file;
mod model;
mod nth_fault;
mod properties;
mod several_processes;
mod steps;
