//! Real files of every odd kind, one row each in `awkward.tsv`: upscaled with these properties, or refused with this
//! message. The files belong to others and are not in the repository; `UPSCALE_TEST_DATA` says where they are.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::files::{Read, read, upscale};

const TABLE: &str = include_str!("awkward.tsv");
/// The list of sources beside the files is none of them.
const SOURCES: &str = "SOURCES.tsv";

/// A row's last two columns, as they should be: outcome and details.
fn outcome(bytes: &[u8]) -> String {
    match upscale(bytes, 2) {
        Err(error) => format!("refused\t{error}"),
        Ok(done) => {
            let result = read(&done.png);
            let stored = done.source.header;
            format!(
                "{} {}x{}\t{}",
                stored.format,
                stored.width,
                stored.height,
                details(&result)
            )
        }
    }
}

/// Size, colour type, depth, what it says of its colours, pixels per metre.
fn details(result: &Read) -> String {
    let color = ["", "gray", "gray+alpha", "rgb", "rgb+alpha"][result.channels];
    let depth = if result.sixteen_bit { 16 } else { 8 };
    let density = match result.info.pixel_dims {
        Some(dims) if dims.unit == png::Unit::Meter => format!("{}x{}/m", dims.xppu, dims.yppu),
        Some(dims) => format!("{}:{}", dims.xppu, dims.yppu),
        None => "-".to_owned(),
    };
    let (width, height) = (result.width, result.height);
    format!(
        "{width}x{height} {color} {depth} {} {density}",
        result.tag()
    )
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn every_awkward_file_ends_as_the_table_says() {
    let Some(folder) =
        std::env::var_os("UPSCALE_TEST_DATA").map(|data| PathBuf::from(data).join("awkward"))
    else {
        eprintln!(
            "left out: {} real files, for UPSCALE_TEST_DATA is not set",
            TABLE.lines().count()
        );
        return;
    };
    assert!(folder.is_dir(), "UPSCALE_TEST_DATA has no folder `awkward`");
    let mut expected: BTreeMap<&str, &str> = TABLE
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect();
    let mut paths = Vec::new();
    walk(&folder, &mut paths);
    paths.sort();
    let mut wrong = Vec::new();
    for path in &paths {
        let name = path
            .strip_prefix(&folder)
            .expect("inside")
            .to_string_lossy();
        if name == SOURCES {
            continue;
        }
        let found = outcome(&std::fs::read(path).expect("readable"));
        if expected.remove(&*name) != Some(&found) {
            wrong.push(format!("{name}\t{found}"));
        }
    }
    wrong.extend(
        expected
            .keys()
            .map(|name| format!("{name}\tis in the table and not in the folder")),
    );
    assert!(
        wrong.is_empty(),
        "not as the table says:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_table_is_sorted_and_every_row_has_three_columns() {
    let names: Vec<&str> = TABLE
        .lines()
        .map(|line| line.split('\t').next().unwrap_or(""))
        .collect();
    assert!(names.is_sorted() && names.len() > 300);
    assert!(TABLE.lines().all(|line| line.split('\t').count() == 3));
}
