//! Every command line of the pages is run, or named here with the reason why not.

use super::{
    pages::{Block, Page, all},
    session,
};

/// Blocks that are not run: page, beginning of the first line, why.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("README.md", "./test.sh", "it runs this test"),
    (
        "README.md",
        "cargo build --release",
        "it builds the binary under test and would install it on this machine",
    ),
    (
        "README.md",
        "curl -fO 'https://releases.example.com",
        "there is no public release yet: checks/release.sh unpacks an archive and runs what is in it",
    ),
    (
        "docs/quick-start.md",
        "cargo build --release",
        "it builds the binary under test and would install it on this machine",
    ),
    (
        "docs/api-reference.md",
        "curl",
        "it needs a service and a key: docs/quick-start.md sends the same requests",
    ),
    (
        "docs/operating.md",
        "cargo install --locked cargo-deb",
        "it would install a package on this machine: checks/packages.sh builds and reads it",
    ),
    (
        "docs/operating.md",
        "(umask 077; head -c 32 /dev/urandom",
        "it would write below /etc: tests/contract/secret_key.rs makes such a file and starts with it",
    ),
    (
        "docs/operating.md",
        "docker build",
        "there is no Docker engine here: the page names what was never run",
    ),
    (
        "docs/operating.md",
        "upscale task show",
        "needs a task whose refund hangs: the store's conformance/operator.rs makes one",
    ),
    (
        "docs/gpu.md",
        "upscale doctor",
        "it needs a GPU: tests/contract/gpu.rs does the same on lavapipe, with smaller pictures",
    ),
    (
        "docs/gpu.md",
        "docker build",
        "there is no Docker engine here: the page names what was never run",
    ),
    (
        "docs/reliability.md",
        "checks/figures.sh",
        "runs the fault programme, minutes or hours of it: tests/chaos holds its short forms",
    ),
    (
        "docs/simulation.md",
        "cargo run --release -p upscale_core",
        "a release build of minutes: `cargo test -p upscale_core --example simulate` runs the same program",
    ),
    (
        "clients/python/README.md",
        "pip install",
        "checks/clients.sh installs it, in an environment of its own",
    ),
    (
        "clients/typescript/README.md",
        "npm install",
        "checks/clients.sh installs it, in a folder of its own",
    ),
    (
        "training/README.md",
        "",
        "needs PyTorch, pictures and hours; its own tests run every program on small data",
    ),
];

/// Languages of blocks that hold no command line.
const NO_COMMANDS: [&str; 8] = [
    "json", "toml", "yaml", "sql", "python", "ts", "rust", "text",
];

fn is_left_out(page: &Page, block: &Block, index: usize) -> bool {
    let (name, start, _) = NOT_RUN[index];
    page.name == name && block.text.starts_with(start)
}

#[test]
fn every_block_says_what_it_is() {
    let pages = all();
    let blocks = pages
        .iter()
        .flat_map(|page| page.blocks.iter().map(move |block| (page, block)));
    let unsaid: Vec<_> = blocks
        .filter(|(page, _)| {
            !page.name.ends_with("ARCHITECTURE.md") && page.name != "docs/architecture.md"
        })
        .filter(|(_, block)| block.language != "sh")
        .filter(|(_, block)| !NO_COMMANDS.contains(&block.language.as_str()))
        .map(|(page, block)| format!("{}: {:?} {:?}", page.name, block.language, block.text))
        .collect();
    assert!(unsaid.is_empty(), "{}", unsaid.join("\n"));
}

#[test]
fn every_command_line_runs_or_is_named_with_a_reason() {
    let pages = all();
    let mut is_used = vec![false; NOT_RUN.len()];
    let mut ran = 0;
    let mut failures = Vec::new();
    for page in &pages {
        let mut blocks = Vec::new();
        for block in page.blocks.iter().filter(|block| block.language == "sh") {
            match (0..NOT_RUN.len()).find(|&index| is_left_out(page, block, index)) {
                Some(index) => is_used[index] = true,
                None => blocks.push(block),
            }
        }
        ran += blocks.len();
        if blocks.is_empty() {
            continue;
        }
        let (alone, together): (Vec<_>, Vec<_>) = blocks
            .into_iter()
            .partition(|block| session::needs_stores(block));
        for blocks in alone.chunks(1).chain([together.as_slice()]) {
            if let Err(why) = session::run(blocks) {
                failures.push(format!("{}: {why}", page.name));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let stale: Vec<_> = (0..NOT_RUN.len())
        .filter(|&index| !is_used[index])
        .collect();
    let stale: Vec<_> = stale.iter().map(|&index| NOT_RUN[index]).collect();
    assert!(stale.is_empty(), "no such blocks: {stale:?}");
    println!(
        "{ran} blocks ran, {} are named with a reason",
        NOT_RUN.len()
    );
    assert!(ran >= 18, "only {ran} blocks ran");
}

#[test]
fn a_block_that_fails_is_told_by_its_first_line() {
    let block = |text: &str| Block {
        language: "sh".to_owned(),
        text: text.to_owned(),
    };
    let (good, bad) = (block("echo a\n"), block("false\n"));
    assert_eq!(session::run(&[&good]), Ok(()));
    let why = session::run(&[&good, &bad, &good]).unwrap_err();
    assert!(why.contains("begins \"false\""), "{why}");
    // A pipe that breaks in the middle, an unset variable, an answer of 4xx or 5xx.
    for text in [
        "false | cat",
        "echo $NO_SUCH_VARIABLE",
        "upscale serve --data ./d\ncurl -s http://127.0.0.1:8080/nothing",
        "upscale serve --no-such-flag",
    ] {
        assert!(session::run(&[&block(text)]).is_err(), "{text}");
    }
}
