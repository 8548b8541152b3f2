//! The house rules that a machine can check: which room may depend on what, how long files and functions
//! may be, where `unsafe`, SQL and the clock may stand. A breach names file, line and rule.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "tidy/names.rs"]
mod names;
#[path = "sources/mod.rs"]
mod sources;
#[path = "tidy/words.rs"]
mod words;

use std::{fs, path::Path};

use sources::{product_lines, root, sources};

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;

/// One room: what it may see of the others, and what it must never depend on.
struct Room {
    name: &'static str,
    sees: &'static [&'static str],
    never: &'static [&'static str],
}

const ROOMS: [Room; 13] = [
    Room {
        name: "upscale_core",
        sees: &[],
        never: &[
            "tokio",
            "axum",
            "rusqlite",
            "serde",
            "serde_json",
            "tracing",
            "hyper",
            "http",
        ],
    },
    Room {
        name: "upscale_store",
        sees: &["upscale_core"],
        never: &["axum", "hyper", "http", "png", "image-webp", "zune-jpeg"],
    },
    Room {
        name: "upscale_image",
        sees: &["upscale_core", "upscale_simd"],
        never: &["tokio", "axum", "hyper", "rusqlite"],
    },
    Room {
        name: "upscale_simd",
        sees: &[],
        never: &["tokio", "half", "rustface", "safetensors"],
    },
    Room {
        name: "upscale_engine",
        sees: &["upscale_core", "upscale_simd"],
        never: &[
            "tokio",
            "axum",
            "hyper",
            "rusqlite",
            "png",
            "image-webp",
            "zune-jpeg",
        ],
    },
    // A binary alone opens a device: the rest asks the engine's `Device`.
    Room {
        name: "upscale_gpu",
        sees: &["upscale_core", "upscale_engine"],
        never: &["tokio", "axum", "hyper", "rusqlite", "png", "serde"],
    },
    Room {
        name: "upscale_api",
        sees: &["upscale_core", "upscale_store"],
        never: &[
            "rusqlite",
            "png",
            "image-webp",
            "zune-jpeg",
            "reqwest",
            "lettre",
        ],
    },
    Room {
        name: "upscale_pipeline",
        sees: &["upscale_core", "upscale_engine", "upscale_image"],
        never: &["axum", "hyper", "http", "rusqlite", "reqwest", "url"],
    },
    Room {
        name: "upscale_worker",
        sees: &["upscale_core", "upscale_pipeline", "upscale_store"],
        never: &["axum", "rusqlite", "png", "image-webp", "zune-jpeg"],
    },
    // Seen by no one: what measures our work is not in what customers install.
    Room {
        name: "upscale_lab",
        sees: &[
            "upscale_core",
            "upscale_engine",
            "upscale_image",
            "upscale_pipeline",
        ],
        never: &["tokio", "axum", "hyper", "rusqlite"],
    },
    Room {
        name: "upscale_fuzz",
        sees: &[
            "upscale_core",
            "upscale_engine",
            "upscale_image",
            "upscale_pipeline",
            "upscale_worker",
        ],
        never: &["axum", "rusqlite"],
    },
    Room {
        name: "upscale_client",
        sees: &[],
        never: &["axum", "rusqlite", "tokio-postgres", "object_store"],
    },
    Room {
        name: "upscale",
        sees: &[
            "upscale_client",
            "upscale_core",
            "upscale_store",
            "upscale_image",
            "upscale_engine",
            "upscale_gpu",
            "upscale_pipeline",
            "upscale_api",
            "upscale_worker",
        ],
        never: &[],
    },
];

/// PostgreSQL refuses a prepared statement that returns all columns once a newer program has added one.
const COLUMNS_BY_NAME: &str = "a statement names its columns";

/// Words that may stand only in files whose path contains one of the places. `tests` are free.
const CONFINED: [(&str, &[&str], &str); 13] = [
    (
        "unsafe ",
        &["upscale_simd/src/", "upscale_pipeline/src/fault.rs"],
        "unsafe stands in upscale_simd only, and in the faults of debug builds",
    ),
    (
        "SystemTime::now",
        &["upscale_core/src/clock.rs"],
        "time is a parameter",
    ),
    (
        "INSERT INTO",
        &["upscale_store/"],
        "SQL stands in the store only",
    ),
    (
        "SELECT ",
        &["upscale_store/"],
        "SQL stands in the store only",
    ),
    ("SELECT *", &[], COLUMNS_BY_NAME),
    ("RETURNING *", &[], COLUMNS_BY_NAME),
    (".*, ", &[], COLUMNS_BY_NAME),
    (".* FROM", &[], COLUMNS_BY_NAME),
    (
        "TcpStream::connect",
        &[
            "upscale_worker/src/fetch",
            "upscale/src/",
            "upscale_pipeline/src/fault.rs",
        ],
        "outgoing connections are opened in the worker's fetch (and the command line's own client)",
    ),
    (
        "reqwest::",
        &[
            "upscale_store/src/results",
            "upscale_client/src/",
            "upscale/src/stripe.rs",
            "upscale/src/traces/post.rs",
            "upscale/src/doctor.rs",
            "upscale/src/health.rs",
            "upscale/src/bench/load.rs",
            "upscale/src/bench/waiting.rs",
        ],
        "HTTP goes out to the operator's bucket and collector, to Stripe and to services from the command line only",
    ),
    (
        "lettre::",
        &["upscale/src/mail.rs"],
        "mail goes out to the operator's server only, from the binary",
    ),
    (
        "StatusCode::",
        &[
            "upscale_api/src/",
            "upscale_worker/src/fetch",
            "upscale_client/src/",
            "upscale/src/",
        ],
        "statuses stand at the HTTP edge only",
    ),
    (
        "std::env::var",
        &[
            "upscale/src/",
            "upscale_pipeline/src/kernels.rs",
            "upscale_pipeline/src/fault.rs",
            "upscale_pipeline/src/picture/real_faces",
        ],
        "configuration is read by the binary only, and by the child what its parent hands on",
    ),
];

const FORBIDDEN_NAMES: [&str; 7] = [
    "utils", "util", "common", "helpers", "types", "manager", "service",
];

fn manifest(room: &str) -> toml::Table {
    let path = root().join("crates").join(room).join("Cargo.toml");
    fs::read_to_string(&path).unwrap().parse().unwrap()
}

fn assert_none(breaches: &[String]) {
    assert!(
        breaches.is_empty(),
        "{} breaches:\n{}",
        breaches.len(),
        breaches.join("\n")
    );
}

/// Whether the line is a comment or belongs to text that only looks like code.
fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

#[test]
fn every_room_sees_only_what_it_may() {
    let mut names: Vec<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut expected: Vec<&str> = ROOMS.iter().map(|room| room.name).collect();
    expected.sort_unstable();
    assert_eq!(
        names, expected,
        "no further crate without a new prohibition"
    );

    let mut breaches = Vec::new();
    for room in &ROOMS {
        let manifest = manifest(room.name);
        for dependency in manifest["dependencies"].as_table().unwrap().keys() {
            let is_room = dependency.starts_with("upscale_");
            if is_room && !room.sees.contains(&dependency.as_str())
                || room.never.contains(&dependency.as_str())
            {
                breaches.push(format!("{} must not depend on {dependency}", room.name));
            }
        }
    }
    assert_none(&breaches);
}

#[test]
fn every_room_takes_versions_and_lints_from_the_workspace() {
    let mut breaches = Vec::new();
    for room in &ROOMS {
        let manifest = manifest(room.name);
        if manifest
            .get("lints")
            .and_then(|lints| lints.get("workspace"))
            .is_none()
        {
            breaches.push(format!("{}: lints.workspace is missing", room.name));
        }
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(table) = manifest.get(section).and_then(toml::Value::as_table) else {
                continue;
            };
            for (name, value) in table {
                if value.get("workspace").is_none() {
                    breaches.push(format!(
                        "{}: {name} must come from the workspace",
                        room.name
                    ));
                }
            }
        }
    }
    assert_none(&breaches);
}

#[test]
fn confined_words_stand_where_they_belong() {
    let mut breaches = Vec::new();
    for (name, text) in sources()
        .iter()
        .filter(|(name, _)| !name.contains("/tests/"))
    {
        for (number, line) in product_lines(text).filter(|(_, line)| !is_comment(line)) {
            for (word, places, rule) in CONFINED {
                if line.contains(word) && !places.iter().any(|place| name.contains(place)) {
                    breaches.push(format!("{name}:{number}: {rule}"));
                }
            }
        }
    }
    assert_none(&breaches);
}

#[test]
fn nothing_is_left_open_or_skipped() {
    // Written in two pieces, so that this file does not find itself.
    let words =
        [("TO", "DO"), ("FIX", "ME"), ("XX", "X")].map(|(start, end)| format!("{start}{end}"));
    let calls = ["to", "unimplemen", "#[ign"].map(|start| match start {
        "to" => format!("{start}do!("),
        "unimplemen" => format!("{start}ted!("),
        _ => format!("{start}ore"),
    });
    let mut breaches = Vec::new();
    for (name, text) in sources()
        .iter()
        .filter(|(name, _)| !name.ends_with("tidy.rs"))
    {
        for (number, line) in text.lines().enumerate() {
            if words
                .iter()
                .chain(&calls)
                .any(|word| line.contains(word.as_str()))
            {
                breaches.push(format!("{name}:{}: left open: {}", number + 1, line.trim()));
            }
        }
    }
    assert_none(&breaches);
}

#[test]
fn files_are_short_and_named_for_what_they_hold() {
    let mut breaches = Vec::new();
    for (name, text) in sources() {
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            breaches.push(format!("{name}: {lines} lines, at most {FILE_LINES_MAX}"));
        }
        let stem = Path::new(&name)
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        if FORBIDDEN_NAMES.contains(&stem.as_str()) {
            breaches.push(format!("{name}: the name says nothing"));
        }
        let first = text.lines().next().unwrap_or_default();
        if !name.contains("/tests/") && !first.starts_with("//!") && !first.starts_with("#!") {
            breaches.push(format!("{name}: must first say what it is for (//!)"));
        }
    }
    assert_none(&breaches);
}

/// Longest functions by indentation: rustfmt closes a function at the column where it opened it.
#[test]
fn functions_are_short() {
    let mut breaches = Vec::new();
    for (name, text) in sources() {
        let mut open: Option<(usize, usize)> = None;
        for (number, line) in text.lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            if is_function_head(line.trim_start()) && !line.trim_end().ends_with(';') {
                open = Some((number, indent));
            } else if line.trim_start().starts_with('}')
                && let Some((start, _)) = open.filter(|&(_, at)| at == indent)
            {
                if number - start > FUNCTION_LINES_MAX {
                    breaches.push(format!("{name}:{}: {} lines", start + 1, number - start));
                }
                open = None;
            }
        }
    }
    assert_none(&breaches);
}

fn is_function_head(line: &str) -> bool {
    let mut words = line.split([' ', '(']).filter(|word| {
        !matches!(
            *word,
            "pub" | "const" | "async" | "unsafe" | "extern" | "\"C\""
        ) && !word.ends_with(')')
    });
    words.next() == Some("fn")
}

#[test]
fn no_path_of_a_machine_stands_in_the_project() {
    let machine_paths = ["/root/", "/home/"].map(str::to_owned);
    let mut breaches = Vec::new();
    for (name, text) in sources()
        .iter()
        .filter(|(name, _)| !name.ends_with("tidy.rs"))
    {
        for (number, line) in text.lines().enumerate() {
            if machine_paths
                .iter()
                .any(|path| line.contains(path.as_str()))
            {
                breaches.push(format!("{name}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert_none(&breaches);
}
