//! The glossary of STYLE.md: words of ours that the field has better ones for stand in no page, no text that users read
//! and no doc comment. Code within backquotes is free: names on the wire and in the database stay. `names.rs` judges names in code.

use std::fs;

use super::{
    assert_none,
    sources::{product_lines, root, sources},
};

/// A word that is refused, and what to write in its place.
const REFUSED: [(&str, &str); 20] = [
    ("anybody", "anyone, a caller"),
    ("cage", "sandbox"),
    ("caged", "in a sandbox"),
    ("chore", "maintenance"),
    ("chores", "maintenance"),
    ("dance", "workflow, polling loop"),
    ("he", "they"),
    ("him", "them"),
    ("his", "their"),
    ("keep_house", "maintenance"),
    ("ladder", "fallbacks"),
    ("leftover", "orphan, rest"),
    ("misdeed", "injected fault"),
    ("misdeeds", "injected faults"),
    ("nobody", "no one, no caller"),
    ("rung", "fallback, level"),
    ("somebody", "someone, a caller"),
    ("stranger", "the caller, an unknown caller"),
    ("strangers", "callers, untrusted"),
    ("whoever", "the caller, anyone who"),
];

/// Phrases, likewise.
const REFUSED_PHRASES: [(&str, &str); 3] = [
    ("for ever", "permanently"),
    ("in disorder", "inconsistent"),
    (
        "do not edit by hand",
        "say nothing; the generating test checks it",
    ),
];

/// Doc comments that say neither unit nor range nor source: better ones, or none.
const EMPTY_DOCS: [&str; 16] = [
    "When.",
    "Who.",
    "Why.",
    "What.",
    "Which.",
    "Which one.",
    "Which of them.",
    "How many.",
    "How much.",
    "Its name.",
    "Its name forever.",
    "Whose it is.",
    "One of them.",
    "All of them.",
    "A new one.",
    "What was found.",
];

/// The pages that hold the words to name them.
const EXPLAINS: [&str; 1] = ["STYLE.md"];

/// What is wrong with a line of prose.
fn breach(line: &str) -> Option<String> {
    let prose = prose(line).to_lowercase();
    let words: Vec<&str> = prose
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let word = REFUSED.iter().find(|(refused, _)| words.contains(refused));
    let spaced = format!(" {} ", words.join(" "));
    let phrase = REFUSED_PHRASES
        .iter()
        .find(|(refused, _)| spaced.contains(&format!(" {refused} ")));
    let (refused, better) = word.or(phrase)?;
    Some(format!("{refused:?}; write: {better}"))
}

/// The line without code within backquotes and without values within braces.
fn prose(line: &str) -> String {
    let mut depth = 0_u32;
    let is_prose = |character: &char| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    };
    // Every second piece stands between backquotes.
    let pieces: Vec<&str> = line.split('`').step_by(2).collect();
    pieces.join(" ").chars().filter(is_prose).collect()
}

/// The pages of the project: those of the book, of the clients and of the root.
fn pages() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in [
        "",
        "docs",
        "docs/decisions",
        "training",
        "clients/python",
        "clients/typescript",
    ] {
        for entry in fs::read_dir(root().join(folder)).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if name.ends_with(".md") || name == "llms.txt" {
                let text = fs::read_to_string(entry.path()).unwrap();
                found.push((
                    format!("{folder}/{name}")
                        .trim_start_matches('/')
                        .to_owned(),
                    text,
                ));
            }
        }
    }
    assert!(found.len() > 60, "only {} pages", found.len());
    found
}

#[test]
fn pages_and_texts_use_the_words_of_the_glossary() {
    let mut all = pages();
    let texts = "crates/upscale/tests/texts.txt";
    all.push((
        texts.to_owned(),
        fs::read_to_string(root().join(texts)).unwrap(),
    ));
    let mut breaches = Vec::new();
    for (name, text) in all
        .iter()
        .filter(|(name, _)| !EXPLAINS.contains(&name.as_str()))
    {
        let mut is_code = false;
        for (number, line) in text.lines().enumerate() {
            is_code ^= line.starts_with("```");
            if let Some(why) = breach(line).filter(|_| !is_code) {
                breaches.push(format!("{name}:{}: {why}", number + 1));
            }
        }
    }
    assert_none(&breaches);
}

#[test]
fn doc_comments_use_the_words_of_the_glossary() {
    let mut breaches = Vec::new();
    for (name, text) in sources()
        .iter()
        .filter(|(name, _)| !name.contains("/tests/"))
    {
        for (number, line) in product_lines(text) {
            let line = line.trim_start();
            let is_doc = line.starts_with("///") || line.starts_with("//!");
            if let Some(why) = breach(line).filter(|_| is_doc) {
                breaches.push(format!("{name}:{number}: {why}"));
            }
            let says = line.trim_start_matches("/// ");
            if is_doc && EMPTY_DOCS.contains(&says) {
                breaches.push(format!("{name}:{number}: {says:?} says nothing"));
            }
        }
    }
    assert_none(&breaches);
}

#[test]
fn words_are_refused_as_words_and_free_as_code() {
    assert!(breach("Nobody's weights").is_some());
    assert!(breach("whether anybody asks").is_some());
    assert!(breach("kept for ever.").is_some());
    assert!(breach("for every one").is_none());
    assert!(breach("the label `rung` of `cage.rs`, task {{ $labels.chore }}").is_none());
    assert!(breach("wrung, bandage, the").is_none());
}
