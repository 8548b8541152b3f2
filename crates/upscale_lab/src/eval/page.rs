//! The page that shows what the figures mean: bicubic beside ours at 100 %, pictures drawn by this program only, so
//! that they may lie in the repository; and under them the figures.

use std::{fs, path::Path};

use anyhow::Context;
use upscale_core::Scale;
use upscale_engine::Engine;
use upscale_image::raster::{Kernel, Pair, Rgb8, before_after};

use super::{
    ConditionInput, Input, Method, Score, Small,
    gates::{find, gates},
    interpolate, run_network,
};
use crate::drawn;

/// The page, and the folder of its pictures beside it.
const NAME: &str = "pictures";

/// A picture to show: file name, what it is, how it was made small.
struct Sheet {
    name: &'static str,
    title: &'static str,
    scale: Scale,
    input: Input,
    draw: fn() -> Rgb8,
}

const SHEETS: [Sheet; 8] = [
    Sheet {
        name: "scene-4x",
        title: "Drawn scene, clean, 4x",
        scale: Scale::X4,
        input: Input::Clean,
        draw: drawn::harbour,
    },
    Sheet {
        name: "scene-4x-jpeg-50",
        title: "Drawn scene, from a JPEG of quality 50, 4x",
        scale: Scale::X4,
        input: Input::Jpeg(50),
        draw: drawn::harbour,
    },
    Sheet {
        name: "scene-4x-noise-20",
        title: "Drawn scene with noise of 20 levels, 4x",
        scale: Scale::X4,
        input: Input::Noisy(20),
        draw: drawn::harbour,
    },
    Sheet {
        name: "scene-4x-soft",
        title: "Drawn scene, blurred by 1.2 pixels, 4x",
        scale: Scale::X4,
        input: Input::Soft(12),
        draw: drawn::harbour,
    },
    Sheet {
        name: "scene-2x-noise-10",
        title: "Drawn scene with noise of 10 levels, 2x",
        scale: Scale::X2,
        input: Input::Noisy(10),
        draw: drawn::harbour,
    },
    Sheet {
        name: "screen-2x",
        title: "Drawn screen, clean, 2x",
        scale: Scale::X2,
        input: Input::Clean,
        draw: drawn::panel,
    },
    Sheet {
        name: "text-2x",
        title: "Drawn text, clean, 2x",
        scale: Scale::X2,
        input: Input::Clean,
        draw: first_page,
    },
    Sheet {
        name: "text-2x-jpeg-50",
        title: "Drawn text, from a JPEG of quality 50, 2x",
        scale: Scale::X2,
        input: Input::Jpeg(50),
        draw: first_page,
    },
];

/// One of the pages whose strokes are counted.
fn first_page() -> Rgb8 {
    drawn::pages().swap_remove(0).picture
}

/// Writes the page and its pictures into `folder`.
pub(super) fn write(folder: &Path, engine: &Engine, means: &[Score]) -> anyhow::Result<()> {
    let pictures = folder.join(NAME);
    fs::create_dir_all(&pictures).with_context(|| pictures.display().to_string())?;
    let mut shown = String::new();
    for sheet in &SHEETS {
        let file = format!("{}.png", sheet.name);
        fs::write(pictures.join(&file), draw(sheet, engine)?.to_png()?)?;
        shown += &format!(
            "\n### {}\n\n![{}: left bicubic, right ours.]({NAME}/{file})\n",
            sheet.title, sheet.title
        );
    }
    let page = text(engine, means, &shown);
    Ok(fs::write(folder.join(format!("{NAME}.md")), page)?)
}

/// The place where the two differ most, at 100 %.
fn draw(sheet: &Sheet, engine: &Engine) -> anyhow::Result<Rgb8> {
    let clean = (sheet.draw)().cropped_to_multiple(sheet.scale.factor());
    let small = Small::make(&clean.context("is large enough")?, sheet.scale, sheet.input)?;
    let pair = Pair {
        bicubic: interpolate(&small, sheet.scale, Kernel::Bicubic),
        ours: run_network(engine, &small.picture, sheet.scale, small.condition, false)?,
    };
    before_after(&[pair]).context("there is one to show")
}

fn text(engine: &Engine, means: &[Score], shown: &str) -> String {
    let [x2, x4] = Scale::ALL.map(|scale| engine.network(scale).name().to_owned());
    let (verdicts, figures) = (verdicts(means), figures(means));
    format!(
        "# What the networks make of pictures

Written by `upscale-lab eval --page docs` with the networks {x2} and {x4}. How they were trained
stands in their cards beside the weights and in [How they were trained](training.md).

## At 100 %: bicubic on the left, ours on the right

The pictures are drawn by this program (`crates/upscale_lab/src/drawn/`), made two or four times smaller, damaged as it says,
and enlarged again. Shown is the part in which the two differ most.
{shown}
## Figures

PSNR on Y (BT.601) in dB, a border of the scale shaved. Small pictures by MATLAB's antialiased bicubic, or by the mean of
squares (\"box\"); JPEGs with colours at half the size; noise in levels of 255, blur in pixels. The condition input of \"ours\" is
matched, as in the service: what the file says of its quantisation, and the estimate of noise and softness. Beside it:
unknown, which says nothing, and mismatched, which says that a damaged picture is clean, or that a clean one was a JPEG of
quality 50. Strokes: the share of ink that a page of text has in common with the original, bicubic → ours.

{figures}
## Gates

{verdicts}"
    )
}

/// How many gates are met, and each that is not.
fn verdicts(means: &[Score]) -> String {
    let all = gates(means);
    let (met, missed): (Vec<_>, Vec<_>) = all.iter().partition(|gate| gate.is_met());
    let mut verdicts = format!("{} of {} are met.", met.len(), all.len());
    if missed.is_empty() {
        return verdicts + "\n";
    }
    verdicts += " Missed:\n\n| set | gate | found | needed | |\n|---|---|---|---|---|\n";
    for gate in missed {
        verdicts += &format!("| {} |\n", gate.cells().join(" | "));
    }
    verdicts
}

/// A line for each set, scale and input.
fn figures(means: &[Score]) -> String {
    let heads = "| set | scale | input | bicubic | Lanczos3 | unknown | mismatched | ours | gain | strokes |";
    let mut table = format!("{heads}\n{}|\n", "|---".repeat(10));
    for of in means.iter().filter(|mean| mean.method == Method::Bicubic) {
        let found = |method| find(means, of, method);
        let psnr = |method| found(method).map_or(f64::NAN, |score| score.psnr);
        let ours = Method::Ours(ConditionInput::Matched);
        let strokes = of.overlap.zip(found(ours).and_then(|score| score.overlap));
        let strokes = strokes.map_or_else(String::new, |(a, b)| format!("{a:.3} → {b:.3}"));
        table += &format!(
            "| {} | {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | **{:.2}** | {:+.2} | {strokes} |\n",
            of.set,
            of.scale,
            of.input.name(),
            of.psnr,
            psnr(Method::Lanczos3),
            psnr(Method::Ours(ConditionInput::Unknown)),
            psnr(Method::Ours(ConditionInput::Mismatched)),
            psnr(ours),
            psnr(ours) - of.psnr,
        );
    }
    table
}
