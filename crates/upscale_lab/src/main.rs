//! `upscale-lab`: what we measure our own work with. Pictures drawn by this program, the benchmark of the field on them and
//! on yours, and where the time of a whole picture goes. Nothing of it is in the program that customers install.

mod args;
mod compare;
mod drawn;
mod eval;
mod print;
mod samples;
mod shapes;
mod sizes;
mod stages;
mod threads;
mod whole;

use clap::Parser;

use args::{Command, Line};

fn main() -> anyhow::Result<()> {
    match Line::parse().command {
        Command::Eval(args) => eval::eval(&args),
        Command::Stages(args) => stages::stages(&args),
        Command::Whole(args) => whole::whole(&args),
        Command::Shapes(args) => shapes::shapes(&args),
        Command::Sizes(args) => sizes::sizes(&args),
        Command::Threads(args) => threads::threads(&args),
        Command::Shape(args) => shapes::shape(&args),
        Command::Photograph { file } => eval::photograph::write(&file),
        Command::Looks { folder } => eval::looks::write(&folder),
        Command::Samples { folder } => samples::write(&folder),
    }
}
