//! Files in, pictures out: one program for all of it, for each would link the decoders anew.

mod alpha;
mod awkward;
mod bed;
mod colour;
mod estimate;
mod files;
mod kinds;
mod lattice;
mod looks;
mod mutations;
mod output_check;
mod refused;
mod restoration;
