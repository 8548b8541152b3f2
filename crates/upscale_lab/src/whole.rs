//! `upscale-lab whole FILE`: what a picture costs beyond its network. Rounds of both, one after the other: the engine
//! alone on the decoded picture (its colours; alpha counts as whole), and the whole way from a file to a file as `upscale file` goes it.

use std::{
    fs::{self, File},
    hint::black_box,
    io::Write,
    ops::ControlFlow,
    path::Path,
    time::Instant,
};

use anyhow::Context;
use upscale_core::{Parameters, Scale};
use upscale_engine::{Engine, EngineOptions, Precision, bench::processor_seconds};
use upscale_image::{Source, decode};

use upscale_pipeline::{PictureOptions, upscale_image, wall};

use crate::{
    args::{WholeArgs, threads},
    print,
};

/// Seconds of one run.
#[derive(Debug, Clone, Copy)]
struct Took {
    wall: f64,
    /// Of all threads, in steps of 10 ms: what other programs take from us hardly shows in them.
    processor: f64,
}

/// Runs the benchmark and prints its ratios.
pub(crate) fn whole(args: &WholeArgs) -> anyhow::Result<()> {
    let scale = args.scale.unwrap_or(Scale::X2);
    let parameters = Parameters::at(scale);
    let options = PictureOptions::shipped(parameters, threads(args.threads), wall)?;
    let bytes = fs::read(&args.file).with_context(|| args.file.display().to_string())?;
    let source = decode(&bytes, options.pixels_max)?;
    let engine = Engine::shipped(EngineOptions {
        threads: options.threads,
        kernels: options.kernels,
        precision: Precision::Fast,
        ..EngineOptions::default()
    })?;
    let folder = tempfile::tempdir()?;
    let to = folder.path().join("out.png");
    // Not counted: the engine makes its plan in it.
    infer(&engine, &source, scale)?;
    let mut rounds = Vec::new();
    for _ in 0..args.runs {
        let alone = timed(|| infer(&engine, &source, scale))?;
        let whole = timed(|| file_to_file(&args.file, &options, &to))?;
        rounds.push((alone, whole));
    }
    show(args, &source, options.threads, &rounds)
}

fn infer(engine: &Engine, source: &Source, scale: Scale) -> anyhow::Result<()> {
    let ended = engine.upscale(&source.color, scale, source.condition, &mut |rows| {
        black_box(rows.samples);
        ControlFlow::Continue(())
    });
    Ok(ended?)
}

fn file_to_file(from: &Path, options: &PictureOptions<'_>, to: &Path) -> anyhow::Result<()> {
    let bytes = fs::read(from)?;
    let upscaled = upscale_image(bytes, options, &mut |_| {})?;
    let mut file = File::create(to)?;
    file.write_all(&upscaled.png)?;
    Ok(file.sync_all()?)
}

fn timed(run: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Took> {
    let (started, before) = (Instant::now(), processor_seconds());
    run()?;
    Ok(Took {
        wall: started.elapsed().as_secs_f64(),
        processor: processor_seconds() - before,
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn show(
    args: &WholeArgs,
    source: &Source,
    threads: usize,
    rounds: &[(Took, Took)],
) -> anyhow::Result<()> {
    let of = |value: fn(&(Took, Took)) -> f64| median(rounds.iter().map(value));
    let figures = [
        ("network alone, seconds", of(|(alone, _)| alone.wall)),
        ("whole, seconds", of(|(_, whole)| whole.wall)),
        (
            "whole / network",
            of(|(alone, whole)| whole.wall / alone.wall),
        ),
        (
            "network alone, processor seconds",
            of(|(alone, _)| alone.processor),
        ),
        ("whole, processor seconds", of(|(_, whole)| whole.processor)),
        (
            "whole / network, processor",
            of(|(alone, whole)| whole.processor / alone.processor),
        ),
    ];
    let size = format!("{} x {}", source.color.width(), source.color.height());
    if args.json {
        let mut object = serde_json::json!({ "size": size, "threads": threads, "runs": args.runs });
        for (name, value) in figures {
            let name = name
                .replace(", ", "_")
                .replace(" / ", "_to_")
                .replace(' ', "_");
            object[name] = value.into();
        }
        return print::json(&object);
    }
    let head = vec![
        "picture".to_owned(),
        format!("{size} on {threads} threads, {} runs", args.runs),
    ];
    let rows = figures.map(|(name, value)| vec![name.to_owned(), format!("{value:.3}")]);
    let rows: Vec<_> = [head].into_iter().chain(rows).collect();
    print::table(&["WHAT", "MEDIAN"], &rows)
}
