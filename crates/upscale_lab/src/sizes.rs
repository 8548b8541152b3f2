//! `upscale-lab sizes`: what squares from an icon to the contract's largest take of a processor, each on one thread in a
//! process of its own, the least of some runs; and how much of that is the picture's.

use std::fs;

use serde_json::json;
use upscale_core::{Parameters, Scale, limits::source_pixels_max};

use crate::{
    args::SizesArgs,
    print,
    shapes::{Cost, in_a_process_of_its_own, waves},
};

const SIDES: [usize; 7] = [16, 32, 64, 128, 256, 512, 1_024];
/// Between these two a pixel's own cost is taken: what both pay once is gone from the difference.
const RATED: [usize; 2] = [256, 512];

/// Measures squares of all sides and prints what each takes beside what its pixels alone would.
pub(crate) fn sizes(args: &SizesArgs) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("source.png");
    let mut costs = Vec::new();
    for side in sides(args.scale) {
        fs::write(&file, waves(side, side).to_png()?)?;
        let mut least: Option<Cost> = None;
        for _ in 0..args.runs {
            let cost = in_a_process_of_its_own(&file, args.scale)?;
            if least.is_none_or(|least| cost.seconds < least.seconds) {
                least = Some(cost);
            }
        }
        costs.extend(least);
    }
    match args.json {
        true => print::json(&json!({ "sizes": costs, "pixel_seconds": pixel_seconds(&costs) })),
        false => show(&costs),
    }
}

fn sides(scale: Scale) -> Vec<usize> {
    let largest = (source_pixels_max(Parameters::at(scale)) as f64).sqrt() as usize;
    let smaller = SIDES.into_iter().filter(|side| *side < largest);
    smaller.chain([largest]).collect()
}

/// What one pixel more takes.
fn pixel_seconds(costs: &[Cost]) -> f64 {
    let of = |side| costs.iter().find(|cost| cost.width == side);
    match RATED.map(of) {
        [Some(small), Some(large)] => {
            (large.seconds - small.seconds) / (pixels(large) - pixels(small))
        }
        _ => f64::NAN,
    }
}

fn pixels(cost: &Cost) -> f64 {
    (cost.width * cost.height) as f64
}

fn show(costs: &[Cost]) -> anyhow::Result<()> {
    let rate = pixel_seconds(costs);
    let rows = costs.iter().map(|cost| {
        let alone = rate * pixels(cost);
        vec![
            format!("{0} x {0}", cost.width),
            format!("{:.1}", 1e3 * cost.seconds),
            format!("{:.1}", 1e3 * alone),
            format!("{:.1}", 1e3 * (cost.seconds - alone)),
            format!("{:.2}", cost.seconds / alone),
            format!("{} MiB", cost.memory_bytes >> 20),
        ]
    });
    let names = ["PICTURE", "MS", "PIXELS ALONE", "REST", "RATIO", "MEMORY"];
    print::table(&names, &rows.collect::<Vec<_>>())?;
    let [small, large] = RATED;
    print::line(&format!(
        "milliseconds of a processor, one thread, without the start of the process; a pixel's own cost is that between {small} and {large} squared"
    ))
}
