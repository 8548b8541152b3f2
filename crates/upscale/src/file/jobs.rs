//! Which files are read and where each result goes: decided, and checked as far as it can be, before any work.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};
use upscale_core::Scale;
use upscale_image::Format;

use crate::{args::FileArgs, whole_file::check_writable};

/// Standard input and output.
const STREAM: &str = "-";
/// Folders in folders beyond this are a loop of links.
const DEPTH_MAX: usize = 64;
/// Files of one run.
const FILES_MAX: usize = 100_000;

/// One picture to upscale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    /// None: standard input.
    pub(super) input: Option<PathBuf>,
    /// None: standard output.
    pub(super) output: Option<PathBuf>,
    pub(super) format: Format,
}

/// All of them; those whose result is there already are left out with `--skip-existing`, and their number told.
pub(super) fn jobs(args: &FileArgs, scale: Scale) -> anyhow::Result<(Vec<Job>, usize)> {
    let (inputs, out) = inputs_and_output(args)?;
    for folder in inputs.iter().filter(|path| path.is_dir()) {
        check_folder(folder, out.as_deref())?;
    }
    let found = found(&inputs, args.recursive)?;
    ensure!(
        !found.is_empty(),
        "{} contains no JPEG, PNG or WebP files",
        list(&inputs)
    );
    let is_folder = found.len() > 1 || inputs.iter().any(|path| path.is_dir());
    let mut jobs = Vec::with_capacity(found.len());
    for source in found {
        jobs.push(job(args, source, out.as_deref(), is_folder, scale)?);
    }
    let all = jobs.len();
    if args.skip_existing {
        jobs.retain(|job| !job.output.as_ref().is_some_and(|path| path.exists()));
    }
    for job in &jobs {
        check_output(job, args.overwrite)?;
    }
    Ok((jobs.clone(), all - jobs.len()))
}

/// The second of two paths is the output unless `--out` names one; where both are there already, it may be a second input.
fn inputs_and_output(args: &FileArgs) -> anyhow::Result<(Vec<PathBuf>, Option<PathBuf>)> {
    let paths = &args.paths;
    if args.out.is_some() || paths.len() != 2 {
        return Ok((paths.clone(), args.out.clone()));
    }
    let second = &paths[1];
    if second.is_file() && !args.overwrite {
        bail!(
            "{0} already exists. If it is the output, pass --overwrite; if it is a second input, name a folder for the results with --out DIR",
            second.display()
        );
    }
    Ok((paths[..1].to_vec(), Some(second.clone())))
}

/// Results among their sources would be the sources of the next run.
fn check_folder(folder: &Path, out: Option<&Path>) -> anyhow::Result<()> {
    let Some(out) = out else {
        bail!(
            "name a folder for the results of {} with --out DIR",
            folder.display()
        );
    };
    let (folder, out) = (std::path::absolute(folder)?, std::path::absolute(out)?);
    ensure!(
        !out.starts_with(&folder),
        "{} is inside the input folder: a later run would upscale its results",
        out.display()
    );
    Ok(())
}

/// A file, and its place below the folder it was found in.
struct Found {
    path: Option<PathBuf>,
    below: PathBuf,
}

fn found(inputs: &[PathBuf], recursive: bool) -> anyhow::Result<Vec<Found>> {
    let mut all = Vec::new();
    for input in inputs {
        if input.as_os_str() == STREAM {
            ensure!(
                inputs.len() == 1,
                "standard input is one picture: pass it alone"
            );
            all.push(Found {
                path: None,
                below: PathBuf::from("stdin"),
            });
        } else if input.is_dir() {
            walk(input, Path::new(""), recursive, 0, &mut all)?;
        } else {
            let below = input.file_name().map(PathBuf::from).unwrap_or_default();
            all.push(Found {
                path: Some(input.clone()),
                below,
            });
        }
    }
    Ok(all)
}

/// Pictures by their names, in the order of these.
fn walk(
    folder: &Path,
    below: &Path,
    recursive: bool,
    depth: usize,
    all: &mut Vec<Found>,
) -> anyhow::Result<()> {
    let shown = || folder.display().to_string();
    ensure!(
        depth < DEPTH_MAX,
        "{}: folders are {DEPTH_MAX} deep",
        shown()
    );
    let entries = fs::read_dir(folder).with_context(shown)?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().with_context(shown)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, below) = (entry.path(), below.join(entry.file_name()));
        // A link to a folder is not followed: it may lead back here.
        if entry.file_type()?.is_dir() {
            if recursive {
                walk(&path, &below, true, depth + 1, all)?;
            }
        } else if format_of(&path).is_some() {
            ensure!(
                all.len() < FILES_MAX,
                "{}: more than {FILES_MAX} files",
                shown()
            );
            let path = Some(path);
            all.push(Found { path, below });
        }
    }
    Ok(())
}

fn job(
    args: &FileArgs,
    found: Found,
    out: Option<&Path>,
    is_folder: bool,
    scale: Scale,
) -> anyhow::Result<Job> {
    let default = args.format.map_or(Format::Png, Into::into);
    let name = default_name(&found.below, scale, default);
    let output = match (out, &found.path) {
        (Some(out), _) if out.as_os_str() == STREAM => {
            ensure!(
                !is_folder,
                "standard output takes one result: pass a folder to --out"
            );
            None
        }
        (Some(out), _) if is_folder || out.is_dir() => Some(out.join(name)),
        (Some(out), _) => Some(out.to_owned()),
        (None, None) => None,
        (None, Some(input)) => Some(input.with_file_name(name.file_name().unwrap_or_default())),
    };
    let format = match &output {
        None => default,
        Some(path) => format_of(path).with_context(|| {
            format!(
                "{}: the name of a result ends in .png, .jpg or .webp",
                path.display()
            )
        })?,
    };
    Ok(Job {
        input: found.path,
        output,
        format,
    })
}

/// `holiday/photo.jpg` at 4x is `holiday/photo-4x.png`.
fn default_name(below: &Path, scale: Scale, format: Format) -> PathBuf {
    let ending = match format {
        Format::Png => "png",
        Format::Jpeg => "jpg",
        Format::WebP => "webp",
    };
    let mut name = below.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{scale}.{ending}"));
    below.with_file_name(name)
}

fn format_of(path: &Path) -> Option<Format> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    match ending.as_str() {
        "png" => Some(Format::Png),
        "jpg" | "jpeg" => Some(Format::Jpeg),
        "webp" => Some(Format::WebP),
        _ => None,
    }
}

/// A result that cannot be written must not be learnt of after a minute's work.
fn check_output(job: &Job, overwrite: bool) -> anyhow::Result<()> {
    let Some(path) = &job.output else {
        return Ok(());
    };
    let shown = path.display();
    ensure!(
        job.input.as_ref() != Some(path),
        "{shown} would replace its own source: give another name with --out"
    );
    ensure!(
        overwrite || !path.exists(),
        "{shown} already exists: --overwrite replaces it, --skip-existing skips it"
    );
    check_writable(path)
}

fn list(paths: &[PathBuf]) -> String {
    let shown = paths.iter().map(|path| path.display().to_string());
    shown.collect::<Vec<_>>().join(", ")
}
