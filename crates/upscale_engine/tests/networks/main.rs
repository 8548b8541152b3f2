//! Networks from file to pixels: one program for all of it, for each would link the engine anew.

mod conditioning;
mod faces;
mod golden;
mod kernels;
mod model_files;
mod ncnn_pairs;
mod precision;
mod streaming;
