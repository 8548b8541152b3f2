//! `upscale eval FOLDER…`: shrinks clean pictures as the field's benchmark does, enlarges them again by bicubic,
//! Lanczos3 and our network, and prints how alike the results are. The arithmetic is `upscale_image::quality`'s.

use std::{
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde::Serialize;
use upscale_core::{Condition, Pixels, Rows, Scale};
use upscale_engine::{Engine, EngineOptions};
use upscale_image::{
    decode,
    quality::{Kernel, Likeness, Rgb8, compare, resize},
};

use crate::{
    args::{EvalArgs, EvalScale},
    file::threads,
    kernels, output,
};

/// Clean pictures are larger than what customers may send; this bounds memory at about 2 GB.
const PIXELS_MAX: u64 = 50_000_000;
/// Names of files that are looked at.
const ENDINGS: [&str; 4] = ["png", "jpg", "jpeg", "webp"];

/// Who enlarges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Method {
    Bicubic,
    Lanczos3,
    Ours,
}

impl Method {
    const ALL: [Self; 3] = [Self::Bicubic, Self::Lanczos3, Self::Ours];

    fn name(self) -> &'static str {
        match self {
            Self::Bicubic => "bicubic",
            Self::Lanczos3 => "lanczos3",
            Self::Ours => "ours",
        }
    }
}

/// The figures of one picture, or the means of a folder when `picture` is none.
#[derive(Debug, Clone, Serialize)]
struct Score {
    folder: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<String>,
    scale: usize,
    method: Method,
    psnr: f64,
    ssim: f64,
}

/// Evaluates all folders.
pub(crate) fn eval(args: &EvalArgs) -> anyhow::Result<()> {
    let pixels_max = usize::try_from(PIXELS_MAX).unwrap_or(usize::MAX);
    let options = EngineOptions {
        threads: threads(args.threads),
        kernels: kernels::from_environment()?,
        pixels_max,
        ..EngineOptions::default()
    };
    let engine = Engine::shipped(options)?;
    let mut scores = Vec::new();
    for folder in &args.folders {
        for path in pictures(folder)? {
            let clean = read_clean(&path)?;
            for &scale in scales(args.scale) {
                let found =
                    score(&engine, &clean, scale).with_context(|| path.display().to_string())?;
                scores.extend(found.map(|(method, likeness)| Score {
                    folder: name(folder),
                    picture: Some(name(&path)),
                    scale: scale.factor(),
                    method,
                    psnr: likeness.psnr,
                    ssim: likeness.ssim,
                }));
            }
        }
    }
    let means = means(&scores);
    if args.json {
        return output::json(&serde_json::json!({ "means": means, "pictures": scores }));
    }
    if args.markdown {
        print_markdown(&means)
    } else {
        print_tables(&scores, &means)
    }
}

fn scales(asked: EvalScale) -> &'static [Scale] {
    match asked {
        EvalScale::X2 => &[Scale::X2],
        EvalScale::X4 => &[Scale::X4],
        EvalScale::Both => &Scale::ALL,
    }
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

fn pictures(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let is_picture = |path: &PathBuf| {
        let ending = path
            .extension()
            .map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
    };
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<_>>()?;
    let mut found: Vec<PathBuf> = paths.into_iter().filter(is_picture).collect();
    if found.is_empty() {
        bail!(
            "{} holds no picture ({})",
            folder.display(),
            ENDINGS.join(", ")
        );
    }
    found.sort();
    Ok(found)
}

fn read_clean(path: &Path) -> anyhow::Result<Rgb8> {
    let shown = || path.display().to_string();
    let bytes = fs::read(path).with_context(shown)?;
    Ok(Rgb8::of_source(
        &decode(&bytes, PIXELS_MAX).with_context(shown)?,
    ))
}

fn score(engine: &Engine, clean: &Rgb8, scale: Scale) -> anyhow::Result<[(Method, Likeness); 3]> {
    let factor = scale.factor();
    let too_small = || {
        format!(
            "{} x {} pixels are too few for {scale}",
            clean.width(),
            clean.height()
        )
    };
    let clean = clean.cropped_to_multiple(factor).with_context(too_small)?;
    let small = resize(
        &clean,
        clean.width() / factor,
        clean.height() / factor,
        Kernel::Bicubic,
    );
    let mut scored = Vec::with_capacity(Method::ALL.len());
    for method in Method::ALL {
        let enlarged = enlarge(engine, &small, scale, method)?;
        let likeness = compare(&clean, &enlarged, factor).with_context(too_small)?;
        scored.push((method, likeness));
    }
    scored
        .try_into()
        .map_err(|_| anyhow::anyhow!("a method was left out"))
}

fn enlarge(engine: &Engine, small: &Rgb8, scale: Scale, method: Method) -> anyhow::Result<Rgb8> {
    let (width, height) = (
        small.width() * scale.factor(),
        small.height() * scale.factor(),
    );
    match method {
        Method::Bicubic => Ok(resize(small, width, height, Kernel::Bicubic)),
        Method::Lanczos3 => Ok(resize(small, width, height, Kernel::Lanczos3)),
        Method::Ours => run_network(engine, small, scale),
    }
}

/// The network alone: no file, no colour profile, no output check.
fn run_network(engine: &Engine, small: &Rgb8, scale: Scale) -> anyhow::Result<Rgb8> {
    let pixels = Pixels::new(small.width(), small.height(), 3, small.to_samples())?;
    let mut samples = Vec::with_capacity(pixels.samples().len() * scale.factor() * scale.factor());
    engine.upscale(&pixels, scale, Condition::Clean, &mut |rows: Rows<'_>| {
        samples.extend_from_slice(rows.samples);
        ControlFlow::Continue(())
    })?;
    let (width, height) = (
        small.width() * scale.factor(),
        small.height() * scale.factor(),
    );
    Ok(Rgb8::of_pixels(&Pixels::new(width, height, 3, samples)?))
}

/// One line for each folder, scale and method, in the order of the pictures.
fn means(scores: &[Score]) -> Vec<Score> {
    let mut means: Vec<(Score, f64)> = Vec::new();
    for score in scores {
        let same = |mean: &&mut (Score, f64)| {
            (&mean.0.folder, mean.0.scale, mean.0.method)
                == (&score.folder, score.scale, score.method)
        };
        match means.iter_mut().find(same) {
            Some((mean, count)) => {
                mean.psnr += score.psnr;
                mean.ssim += score.ssim;
                *count += 1.0;
            }
            None => means.push((
                Score {
                    picture: None,
                    ..score.clone()
                },
                1.0,
            )),
        }
    }
    let divide = |(mean, count): (Score, f64)| Score {
        psnr: mean.psnr / count,
        ssim: mean.ssim / count,
        ..mean
    };
    means.into_iter().map(divide).collect()
}

fn cells(score: &Score) -> [String; 5] {
    let (psnr, ssim) = (format!("{:.3}", score.psnr), format!("{:.4}", score.ssim));
    [
        score.folder.clone(),
        score.scale.to_string(),
        score.method.name().to_owned(),
        psnr,
        ssim,
    ]
}

fn print_markdown(means: &[Score]) -> anyhow::Result<()> {
    output::line("| set | scale | method | PSNR-Y | SSIM-Y |\n|---|---|---|---|---|")?;
    for mean in means {
        output::line(&format!("| {} |", cells(mean).join(" | ")))?;
    }
    Ok(())
}

fn print_tables(scores: &[Score], means: &[Score]) -> anyhow::Result<()> {
    let row = |score: &Score| {
        let [folder, scale, method, psnr, ssim] = cells(score);
        let picture = score.picture.clone().unwrap_or_else(|| "(mean)".to_owned());
        vec![folder, picture, scale, method, psnr, ssim]
    };
    let rows: Vec<Vec<String>> = scores.iter().chain(means).map(row).collect();
    output::table(
        &["SET", "PICTURE", "SCALE", "METHOD", "PSNR-Y", "SSIM-Y"],
        &rows,
    )
}
