//! The pages of the project as Markdown says they are: headings, links, blocks.

use std::{
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd};

/// What is no one's page: made, fetched or foreign.
const PASSED_OVER: [&str; 6] = [
    "target",
    "node_modules",
    ".git",
    "venv",
    "shared",
    ".pytest_cache",
];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// One page.
pub(crate) struct Page {
    /// From the project's root, such as `docs/errors.md`.
    pub(crate) name: String,
    /// Its text, with what it includes.
    pub(crate) text: String,
    pub(crate) headings: BTreeSet<String>,
    /// Targets of links and pictures, as written.
    pub(crate) links: Vec<String>,
    pub(crate) code: Vec<String>,
    pub(crate) blocks: Vec<Block>,
}

/// A block of code.
pub(crate) struct Block {
    /// Its language; empty where the page does not say.
    pub(crate) language: String,
    pub(crate) text: String,
}

/// Every page of the repository.
pub(crate) fn all() -> Vec<Page> {
    let mut names = Vec::new();
    let mut open = vec![root()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let is_passed_over = PASSED_OVER.iter().any(|passed| name == *passed);
            if path.is_dir() && !path.is_symlink() && !is_passed_over {
                open.push(path);
            } else if path.extension().is_some_and(|kind| kind == "md") {
                let name = path.strip_prefix(root()).unwrap();
                names.push(name.to_string_lossy().into_owned());
            }
        }
    }
    names.sort();
    assert!(names.len() > 30, "only {} pages: {names:?}", names.len());
    names.iter().map(|name| read(name)).collect()
}

pub(crate) fn read(name: &str) -> Page {
    let text = fs::read_to_string(root().join(name)).unwrap();
    parse(name, &with_includes(name, &text))
}

/// mdBook's `{{#include FILE}}`, for whole files, which is all that the book uses.
fn with_includes(name: &str, text: &str) -> String {
    let folder = root().join(name).parent().unwrap().to_owned();
    let line = |line: &str| match line.strip_prefix("{{#include ") {
        Some(rest) => fs::read_to_string(folder.join(rest.trim_end_matches('}'))).unwrap(),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

fn parse(name: &str, text: &str) -> Page {
    let mut page = Page {
        name: name.to_owned(),
        text: text.to_owned(),
        headings: BTreeSet::new(),
        links: Vec::new(),
        code: Vec::new(),
        blocks: Vec::new(),
    };
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let (mut heading, mut block) = (None::<String>, None::<Block>);
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                page.headings.insert(anchor(&heading.take().unwrap()));
            }
            Event::Start(Tag::CodeBlock(kind)) => block = Some(started(&kind)),
            Event::End(TagEnd::CodeBlock) => page.blocks.push(block.take().unwrap()),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(dest_url.into_string());
            }
            Event::Text(words) | Event::Code(words) if heading.is_some() => {
                heading.as_mut().unwrap().push_str(&words);
            }
            Event::Text(words) => {
                if let Some(block) = &mut block {
                    block.text.push_str(&words);
                }
            }
            Event::Code(words) => page.code.push(words.into_string()),
            _ => {}
        }
    }
    page
}

fn started(kind: &CodeBlockKind<'_>) -> Block {
    let language = match kind {
        CodeBlockKind::Fenced(language) => CowStr::clone(language).into_string(),
        CodeBlockKind::Indented => String::new(),
    };
    Block {
        language,
        text: String::new(),
    }
}

/// The name by which a heading is linked, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// A path without `.` and `..`.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole
}

#[test]
fn headings_links_and_blocks_are_found_and_anchored_as_readers_know_them() {
    let page = parse(
        "a.md",
        "# Why `no` webhooks?\n\n[a](b.md#c) ![d](e.png) `f/g`\n\n```sh\nrun\n```\n\n    indented\n",
    );
    assert!(page.headings.contains("why-no-webhooks"));
    assert_eq!(page.links, ["b.md#c", "e.png"]);
    assert_eq!(page.code, ["f/g"]);
    let blocks: Vec<_> = page
        .blocks
        .iter()
        .map(|block| (block.language.as_str(), block.text.trim()))
        .collect();
    assert_eq!(blocks, [("sh", "run"), ("", "indented")]);
}
