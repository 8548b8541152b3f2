//! `upscale-lab threads`: what a picture takes by the clock and of all processors with 1 to 32 threads, beside one thread. More
//! threads than cores cannot be faster; they must not take more of the processors either, for others use those.

use serde_json::json;
use upscale_engine::{
    EngineOptions, Precision, Shape,
    bench::{Bench, Measured},
};

use crate::{args::ThreadsArgs, print};

const THREADS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// Measures network S on one picture with each number of threads.
pub(crate) fn threads(args: &ThreadsArgs) -> anyhow::Result<()> {
    let shape =
        Shape::parse("s").ok_or_else(|| anyhow::anyhow!("the engine knows no shape `s`"))?;
    let mut bench = Bench::of_shape(shape, args.side, args.side);
    bench.runs = args.runs as usize;
    let mut measured = Vec::new();
    for threads in THREADS {
        let options = EngineOptions {
            threads,
            precision: Precision::Fast,
            ..EngineOptions::default()
        };
        measured.push((threads, bench.run(&options)?));
    }
    match args.json {
        true => print::json(&json!(measured.iter().map(figures).collect::<Vec<_>>())),
        false => show(&measured),
    }
}

fn figures((threads, measured): &(usize, Measured)) -> serde_json::Value {
    json!({
        "threads": threads,
        "seconds": measured.seconds,
        "processor_seconds": measured.processor_seconds,
        "cancel_seconds": measured.cancel_seconds,
    })
}

fn show(measured: &[(usize, Measured)]) -> anyhow::Result<()> {
    let one = &measured[0].1;
    let rows = measured.iter().map(|(threads, now)| {
        vec![
            threads.to_string(),
            format!("{:.2}", now.seconds / one.seconds),
            format!("{:.2}", now.processor_seconds / one.processor_seconds),
            format!("{:.1} ms", 1e3 * now.cancel_seconds),
        ]
    });
    let names = ["THREADS", "CLOCK", "PROCESSORS", "STOPS WITHIN"];
    print::table(&names, &rows.collect::<Vec<_>>())?;
    print::line(&format!(
        "times of one thread, {:.3} s by the clock and {:.3} s of a processor a picture",
        one.seconds, one.processor_seconds
    ))
}
