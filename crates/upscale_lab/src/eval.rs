//! `upscale-lab eval FOLDER…`: shrinks clean pictures as the field's benchmark does, enlarges them again by bicubic,
//! Lanczos3 and our network, and prints how alike the results are. With `--gates` the small pictures are compressed as
//! well and the networks given a matched, an unknown and a mismatched condition input. The arithmetic is `compare.rs`'s.

mod gates;
mod input;
pub(crate) mod looks;
mod page;
pub(crate) mod photograph;
mod sets;
mod strokes;

use std::ops::ControlFlow;

use anyhow::Context;
use serde::{Serialize, Serializer};
use upscale_core::{Condition, Look, Parameters, Pixels, Rows, Scale};
use upscale_engine::{Engine, EngineOptions};
use upscale_image::{
    decode,
    raster::{Kernel, Rgb8, resize},
};
use upscale_pipeline::{PictureOptions, kernels, upscale_image, wall};

use self::{
    gates::gates,
    input::{Input, Small},
    sets::{Picture, Set},
};
use crate::{
    args::{EvalArgs, EvalScale, threads},
    compare::compare,
    print,
};

/// Clean pictures are larger than what customers may send; this bounds memory at about 2 GB.
const PIXELS_MAX: u64 = 50_000_000;

/// Who enlarges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Bicubic,
    Lanczos3,
    Ours(ConditionInput),
}

/// What the network is given about the picture's compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConditionInput {
    /// What its file says, as in the service.
    Matched,
    /// Nothing: the condition input of a file without history.
    Unknown,
    /// What is furthest from the file.
    Mismatched,
}

impl Method {
    const BENCHMARK: [Self; 3] = [
        Self::Bicubic,
        Self::Lanczos3,
        Self::Ours(ConditionInput::Matched),
    ];
    const ALL: [Self; 5] = [
        Self::Bicubic,
        Self::Lanczos3,
        Self::Ours(ConditionInput::Matched),
        Self::Ours(ConditionInput::Unknown),
        Self::Ours(ConditionInput::Mismatched),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Bicubic => "bicubic",
            Self::Lanczos3 => "lanczos3",
            Self::Ours(ConditionInput::Matched) => "ours",
            Self::Ours(ConditionInput::Unknown) => "ours, unknown",
            Self::Ours(ConditionInput::Mismatched) => "ours, mismatched",
        }
    }
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// The figures of one picture, or the means of a set when `picture` is none.
#[derive(Debug, Clone, Serialize)]
struct Score {
    set: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<String>,
    scale: usize,
    input: Input,
    method: Method,
    psnr: f64,
    ssim: f64,
    /// Root mean square error of colour differences, in levels.
    colour: f64,
    /// Of strokes, where there is nothing but strokes.
    #[serde(skip_serializing_if = "Option::is_none")]
    overlap: Option<f64>,
}

/// Evaluates all folders.
pub(crate) fn eval(args: &EvalArgs) -> anyhow::Result<()> {
    let options = EngineOptions {
        threads: threads(args.threads),
        kernels: kernels::from_environment()?,
        pixels_max: usize::try_from(PIXELS_MAX).unwrap_or(usize::MAX),
        ..EngineOptions::default()
    };
    let engine = Engine::shipped(options)?;
    let folders = args.folders.iter().map(|folder| sets::folder(folder));
    let mut all: Vec<Set> = folders.collect::<anyhow::Result<_>>()?;
    if with_gates(args) {
        all.extend(sets::drawn_sets());
    }
    let scores = score_sets(&engine, &all, args)?;
    let means = means(&scores);
    if args.json {
        print::json(&serde_json::json!({ "means": means, "pictures": scores }))?;
    } else if args.means {
        print_scores(&means)?;
    } else {
        print_scores(&[scores, means.clone()].concat())?;
    }
    if with_gates(args) && !args.json {
        print_gates(&means)?;
    }
    match &args.page {
        Some(folder) => page::write(folder, &engine, &means),
        None => Ok(()),
    }
}

fn with_gates(args: &EvalArgs) -> bool {
    args.gates || args.page.is_some()
}

fn scales(asked: EvalScale) -> &'static [Scale] {
    match asked {
        EvalScale::X2 => &[Scale::X2],
        EvalScale::X4 => &[Scale::X4],
        EvalScale::Both => &Scale::ALL,
    }
}

fn score_sets(engine: &Engine, sets: &[Set], args: &EvalArgs) -> anyhow::Result<Vec<Score>> {
    let scales = scales(args.scale);
    let (inputs, methods) = if with_gates(args) {
        (&Input::ALL[..], &Method::ALL[..])
    } else {
        (&Input::ALL[..1], &Method::BENCHMARK[..])
    };
    let mut scores = Vec::new();
    for set in sets {
        for picture in &set.pictures {
            let clean = picture.read()?;
            for (&scale, &input) in scales
                .iter()
                .flat_map(|scale| inputs.iter().map(move |input| (scale, input)))
            {
                let trial = Trial {
                    engine,
                    eightfold: args.max,
                    set,
                    picture,
                    scale,
                    input,
                };
                let found = trial.score(&clean, methods);
                scores.extend(found.with_context(|| picture.name.clone())?);
            }
        }
    }
    Ok(scores)
}

/// One picture, made small in one way.
struct Trial<'a> {
    engine: &'a Engine,
    eightfold: bool,
    set: &'a Set,
    picture: &'a Picture,
    scale: Scale,
    input: Input,
}

impl Trial<'_> {
    fn score(&self, clean: &Rgb8, methods: &[Method]) -> anyhow::Result<Vec<Score>> {
        let factor = self.scale.factor();
        let too_small = || {
            let (width, height) = (clean.width(), clean.height());
            format!("{width} x {height} pixels are too few for {}", self.scale)
        };
        let clean = clean.cropped_to_multiple(factor).with_context(too_small)?;
        let small = Small::make(&clean, self.scale, self.input)?;
        let score = |&method: &Method| {
            let enlarged = self.enlarge(&small, method)?;
            let likeness = compare(&clean, &enlarged, factor).with_context(too_small)?;
            let strokes = self.picture.strokes.as_ref();
            Ok(Score {
                set: self.set.name.clone(),
                picture: Some(self.picture.name.clone()),
                scale: factor,
                input: self.input,
                method,
                psnr: likeness.psnr,
                ssim: likeness.ssim,
                colour: strokes::colour_error(&clean, &enlarged, factor),
                overlap: strokes.map(|strokes| strokes.overlap(&clean, &enlarged, factor)),
            })
        };
        methods.iter().map(score).collect()
    }

    fn enlarge(&self, small: &Small, method: Method) -> anyhow::Result<Rgb8> {
        let condition = match method {
            Method::Bicubic => return Ok(interpolate(small, self.scale, Kernel::Bicubic)),
            Method::Lanczos3 => return Ok(interpolate(small, self.scale, Kernel::Lanczos3)),
            Method::Ours(ConditionInput::Matched) => small.condition,
            Method::Ours(ConditionInput::Unknown) => Condition::UNKNOWN,
            Method::Ours(ConditionInput::Mismatched) => self.input.mismatched()?,
        };
        run_network(
            self.engine,
            &small.picture,
            self.scale,
            condition,
            self.eightfold,
        )
    }
}

fn interpolate(small: &Small, scale: Scale, kernel: Kernel) -> Rgb8 {
    let (picture, factor) = (&small.picture, scale.factor());
    resize(
        picture,
        picture.width() * factor,
        picture.height() * factor,
        kernel,
    )
}

/// As the service makes it, from file to file.
fn as_served(small: &Small, scale: Scale, look: Look) -> anyhow::Result<Rgb8> {
    let options = PictureOptions {
        look,
        ..PictureOptions::shipped(Parameters::at(scale), threads(None), wall)?
    };
    let upscaled = upscale_image(small.file.clone(), &options, &mut |_| {})?;
    Ok(Rgb8::of_source(&decode(&upscaled.png, PIXELS_MAX)?))
}

/// The network alone: no colour profile, no output check.
fn run_network(
    engine: &Engine,
    small: &Rgb8,
    scale: Scale,
    condition: Condition,
    eightfold: bool,
) -> anyhow::Result<Rgb8> {
    let factor = scale.factor();
    let pixels = Pixels::new(small.width(), small.height(), 3, small.to_samples())?;
    let samples = match eightfold {
        true => engine.ensemble(&pixels, scale, condition, &mut |_| ())?,
        false => once(engine, &pixels, scale, condition)?,
    };
    let (width, height) = (small.width() * factor, small.height() * factor);
    Ok(Rgb8::of_pixels(&Pixels::new(width, height, 3, samples)?))
}

fn once(
    engine: &Engine,
    pixels: &Pixels,
    scale: Scale,
    condition: Condition,
) -> anyhow::Result<Vec<f32>> {
    let mut samples = Vec::with_capacity(pixels.samples().len() * scale.factor() * scale.factor());
    engine.upscale(pixels, scale, condition, &mut |rows: Rows<'_>| {
        samples.extend_from_slice(rows.samples);
        ControlFlow::Continue(())
    })?;
    Ok(samples)
}

/// One line for each set, input, scale and method, in the order of the pictures.
fn means(scores: &[Score]) -> Vec<Score> {
    let mut means: Vec<(Score, f64)> = Vec::new();
    for score in scores {
        let same = |mean: &&mut (Score, f64)| {
            (&mean.0.set, mean.0.scale, mean.0.input, mean.0.method)
                == (&score.set, score.scale, score.input, score.method)
        };
        match means.iter_mut().find(same) {
            Some((mean, count)) => {
                mean.psnr += score.psnr;
                mean.ssim += score.ssim;
                mean.colour += score.colour;
                mean.overlap = mean.overlap.zip(score.overlap).map(|(a, b)| a + b);
                *count += 1.0;
            }
            None => {
                let picture = None;
                let first = score.clone();
                means.push((Score { picture, ..first }, 1.0));
            }
        }
    }
    let divide = |(mean, count): (Score, f64)| Score {
        psnr: mean.psnr / count,
        ssim: mean.ssim / count,
        colour: mean.colour / count,
        overlap: mean.overlap.map(|overlap| overlap / count),
        ..mean
    };
    means.into_iter().map(divide).collect()
}

const HEADS: [&str; 8] = [
    "set",
    "scale",
    "input",
    "method",
    "PSNR-Y",
    "SSIM-Y",
    "colour error",
    "strokes' overlap",
];

fn cells(score: &Score) -> [String; 8] {
    [
        score.set.clone(),
        score.scale.to_string(),
        score.input.name(),
        score.method.name().to_owned(),
        format!("{:.3}", score.psnr),
        format!("{:.4}", score.ssim),
        format!("{:.3}", score.colour),
        score
            .overlap
            .map_or_else(String::new, |overlap| format!("{overlap:.3}")),
    ]
}

fn print_scores(scores: &[Score]) -> anyhow::Result<()> {
    let row = |score: &Score| {
        let mut row = Vec::from(cells(score));
        let picture = score.picture.clone();
        row.insert(1, picture.unwrap_or_else(|| "(mean)".to_owned()));
        row
    };
    let rows: Vec<Vec<String>> = scores.iter().map(row).collect();
    let mut heads = Vec::from(HEADS);
    heads.insert(1, "picture");
    print::table(&heads, &rows)
}

fn print_gates(means: &[Score]) -> anyhow::Result<()> {
    print::line("")?;
    let rows: Vec<Vec<String>> = gates(means)
        .iter()
        .map(|gate| Vec::from(gate.cells()))
        .collect();
    print::table(&["SET", "GATE", "FOUND", "NEEDED", ""], &rows)
}
