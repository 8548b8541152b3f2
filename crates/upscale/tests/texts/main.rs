//! Every text that a user can read, in one file, so that it can be read at once: pages, messages, help, alerts.
//! `UPSCALE_BLESS=1 cargo test --test texts` writes `texts.txt` anew.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod rust_literals;
#[path = "../sources/mod.rs"]
mod sources;
mod templates;

use std::{fmt::Write, fs, path::Path, process::Command};

use serde_json::Value;
use sources::{product_lines, root, sources};

/// What the texts are kept in, from the project's folder.
const KEPT: &str = "crates/upscale/tests/texts.txt";

/// Rooms whose literals people read: the store's are SQL, the engine's and the laboratory's stay among developers.
const SPEAKING: [&str; 7] = [
    "crates/upscale/src",
    "crates/upscale_api/src",
    "crates/upscale_client/src",
    "crates/upscale_core/src",
    "crates/upscale_image/src",
    "crates/upscale_pipeline/src",
    "crates/upscale_worker/src",
];

#[test]
fn every_text_that_a_user_can_read_is_in_one_file() {
    let mut texts = String::from(
        "# Texts that users read. UPSCALE_BLESS=1 cargo test --test texts writes this file.\n",
    );
    for (title, lines) in pages().into_iter().chain(messages()) {
        section(&mut texts, &title, &lines);
    }
    section(&mut texts, "docs/openapi.json", &descriptions());
    section(&mut texts, "packages/prometheus/alerts.yaml", &alerts());
    for (command, help) in helps() {
        section(&mut texts, &command, &[help]);
    }
    let path = root().join(KEPT);
    if std::env::var_os("UPSCALE_BLESS").is_some() {
        fs::write(&path, &texts).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let differs = kept
        .lines()
        .zip(texts.lines())
        .find(|(kept, made)| kept != made);
    assert!(
        kept == texts,
        "{KEPT} is stale at {differs:?}; read the change and run: UPSCALE_BLESS=1 cargo test --test texts"
    );
}

fn section(texts: &mut String, title: &str, lines: &[String]) {
    if !lines.is_empty() {
        write!(texts, "\n## {title}\n{}\n", lines.join("\n")).unwrap();
    }
}

/// Each template with its words.
fn pages() -> Vec<(String, Vec<String>)> {
    let mut names = Vec::new();
    let mut open = vec![root().join("crates/upscale_api/templates")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else {
                names.push(entry.path());
            }
        }
    }
    names.push(root().join("crates/upscale/src/demo/page.html"));
    names.sort();
    assert!(names.len() > 40, "only {} templates", names.len());
    let read = |path: &Path| templates::words(&fs::read_to_string(path).unwrap());
    names
        .iter()
        .map(|path| (from_root(path), read(path)))
        .collect()
}

fn from_root(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap();
    path.to_string_lossy().into_owned()
}

/// Each source of the rooms that speak, with its literals of two words and more.
fn messages() -> Vec<(String, Vec<String>)> {
    let mut sources = sources();
    sources.sort();
    let speaking = sources
        .iter()
        .filter(|(name, _)| SPEAKING.iter().any(|room| name.starts_with(room)));
    speaking
        .filter(|(name, _)| !name.ends_with("tests.rs") && !name.contains("/tests/"))
        .map(|(name, text)| {
            let product: Vec<_> = product_lines(text).map(|(_, line)| line).collect();
            let literals = rust_literals::literals(&product.join("\n"));
            (
                name.clone(),
                literals
                    .into_iter()
                    .filter(|text| is_sentence(text))
                    .collect(),
            )
        })
        .collect()
}

/// Whether people read it: two words with a blank between them, values aside, and neither markup nor JSON.
fn is_sentence(text: &str) -> bool {
    let is_word = |word: &&str| !word.starts_with('{') && word.chars().any(char::is_alphabetic);
    text.split(' ').filter(is_word).count() > 1 && !text.starts_with('<')
}

/// Summaries and descriptions of the API's own description.
fn descriptions() -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/openapi.json")).unwrap();
    let mut found = Vec::new();
    collect(&serde_json::from_str(&text).unwrap(), &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str() {
                    Some(text)
                        if ["summary", "description", "message"].contains(&name.as_str()) =>
                    {
                        if !found.iter().any(|known| known == text) {
                            found.push(text.to_owned());
                        }
                    }
                    _ => collect(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

/// Names, summaries and descriptions of the alerts.
fn alerts() -> Vec<String> {
    let text = fs::read_to_string(root().join("packages/prometheus/alerts.yaml")).unwrap();
    let lines = text
        .lines()
        .map(|line| line.trim().trim_start_matches("- "));
    let found: Vec<_> = lines
        .filter(|line| {
            ["alert:", "summary:", "description:"]
                .iter()
                .any(|key| line.starts_with(key))
        })
        .map(str::to_owned)
        .collect();
    assert!(found.len() > 10, "{found:?}");
    found
}

/// The help of every command, as the binary prints it.
fn helps() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(command) = open.pop() {
        let help = help(&command);
        for name in subcommands(&help) {
            open.push([command.clone(), vec![name]].concat());
        }
        found.push((
            format!("upscale {} --help", command.join(" ")).replace("  ", " "),
            help,
        ));
    }
    found.sort();
    assert!(found.len() > 30, "only {} commands", found.len());
    found
}

fn help(command: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_upscale"))
        .args(command)
        .arg("--help")
        .env_remove("COLUMNS")
        .output()
        .unwrap();
    assert!(output.status.success(), "{command:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The names that help lists, indented by two, in groups of commands.
fn subcommands(help: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_list = false;
    for line in help.lines() {
        if !line.starts_with(' ') && !line.is_empty() {
            is_list = line.ends_with(':') && !["Examples:", "Arguments:"].contains(&line);
        } else if is_list && line.starts_with("  ") && !line.starts_with("   ") {
            let name = line.trim().split(' ').next().unwrap();
            if name != "help" && name.starts_with(|first: char| first.is_ascii_lowercase()) {
                names.push(name.to_owned());
            }
        }
    }
    names
}
