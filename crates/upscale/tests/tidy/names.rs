//! The glossary of STYLE.md in names: of files, functions, types, fields and variables, tests included, and of metrics,
//! their labels and alerts. `words.rs` judges prose; here comments and texts are left out.

use std::{collections::BTreeSet, fs};

use super::{
    assert_none,
    sources::{root, sources},
};

/// A part of a name that is refused, and what to write in its place. `CageWall`, `cage_wall` and `CAGE_WALL` have the same
/// parts.
const REFUSED_PARTS: [(&str, &str); 27] = [
    ("anybody", "anyone"),
    ("cage", "sandbox"),
    ("caged", "sandboxed"),
    ("chore", "maintenance task"),
    ("chores", "maintenance"),
    ("dance", "workflow, polling loop"),
    ("door", "sign-in"),
    ("doors", "sign-in"),
    ("everybody", "everyone"),
    ("heard", "acknowledged, received, reported"),
    ("hears", "replies, receives"),
    ("housekeeper", "maintenance"),
    ("housekeeping", "maintenance"),
    ("ladder", "fallbacks, series"),
    ("leftover", "orphan, rest"),
    ("misdeed", "injected fault"),
    ("misdeeds", "injected faults"),
    ("nobody", "no one, unprivileged"),
    ("patience", "timeout, wait"),
    ("rung", "fallback level, path"),
    ("rungs", "fallback levels"),
    ("somebody", "someone, another process"),
    ("stranger", "unknown caller, foreign"),
    ("strangers", "unknown callers"),
    ("trail", "context, audit"),
    ("trails", "contexts"),
    ("whoever", "anyone who"),
];

/// Whole names that are refused: their parts are good words elsewhere (`turn_on`, `multiply_in_place`).
const REFUSED_NAMES: [(&str, &str); 16] = [
    ("turn", "attempt, round"),
    ("turns", "attempts, rounds"),
    ("hear", "receive, count"),
    ("say", "report, announce"),
    ("saying", "report, replay"),
    ("said", "reported, output"),
    ("told", "known, reported, condition"),
    ("lie", "mismatched"),
    ("keep_house", "maintain"),
    ("gaveup", "timeout"),
    ("gave_up", "timeout"),
    ("place_limits", "permit limits"),
    ("no_place", "no permit"),
    ("take_place", "take_permit"),
    ("find_place", "find_permit"),
    ("say_until_heard", "report_until_acknowledged"),
];

/// Types of which only the plain word is refused; variables may be places.
const REFUSED_TYPES: [(&str, &str); 3] = [
    ("Place", "Permit, Location, Origin"),
    ("Places", "Permits"),
    ("NoPlace", "NoPermit"),
];

/// Where a word is meant as it stands: houses with doors are drawn there.
const DRAWN: &str = "upscale_lab/src/drawn/";

/// Where names are metrics', labels' and alerts', whatever quotes them.
const LABELLED: [&str; 4] = [
    "crates/upscale/src/metrics/catalogue.rs",
    "packages/grafana/upscale.json",
    "packages/prometheus/alerts.yaml",
    "packages/prometheus/alerts_test.yaml",
];

/// Every name within the text, once.
fn names(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|name| !name.is_empty())
        .collect()
}

/// `SpanKind` and `SPAN_KIND` as `span_kind`.
fn in_snake_case(name: &str) -> String {
    let mut snake = String::new();
    let mut was_small = false;
    for character in name.chars() {
        if character.is_uppercase() && was_small {
            snake.push('_');
        }
        was_small = character.is_lowercase();
        snake.extend(character.to_lowercase());
    }
    snake
}

/// What is wrong with a name.
fn breach(name: &str) -> Option<String> {
    let snake = in_snake_case(name);
    let whole = |(refused, _): &&(&str, &str)| snake == *refused;
    let exact = |(refused, _): &&(&str, &str)| name == *refused;
    let found = refused_part(&snake).or_else(|| REFUSED_NAMES.iter().find(whole));
    let found = found.or_else(|| REFUSED_TYPES.iter().find(exact));
    found.map(|(refused, better)| format!("{name} has {refused:?}; write: {better}"))
}

fn refused_part(snake: &str) -> Option<&'static (&'static str, &'static str)> {
    let mut parts = snake.split('_');
    parts.find_map(|part| REFUSED_PARTS.iter().find(|(refused, _)| part == *refused))
}

/// What is wrong with a word beside which prose stands: `say` is a good one there.
fn label_breach(word: &str) -> Option<String> {
    let is_turn = matches!(word, "turn" | "turns");
    let is_refused = is_turn || refused_part(&in_snake_case(word)).is_some();
    is_refused.then(|| breach(word)).flatten()
}

/// A line of Rust without its comment and its texts. A text of several lines leaves its first: names are made elsewhere.
fn code(line: &str) -> String {
    let mut code = String::new();
    let (mut in_text, mut is_escaped, mut before) = (false, false, ' ');
    for character in line.chars() {
        match (character, in_text) {
            (_, true) if is_escaped => is_escaped = false,
            ('\\', true) => is_escaped = true,
            ('"', _) if before != '\'' => in_text = !in_text,
            ('/', false) if before == '/' => break,
            (_, true) => {}
            (other, false) => code.push(other),
        }
        before = character;
    }
    code
}

/// The source with its comments and texts left out; of a text that runs over lines each line is one.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut in_text = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let quotes = line.replace("\\\"", "").replace("'\"'", "");
        let is_odd = !quotes.trim_start().starts_with("//") && quotes.matches('"').count() % 2 == 1;
        let was_in_text = in_text;
        in_text ^= is_odd;
        match (was_in_text, is_odd) {
            (true, false) => None,
            (true, true) => {
                let rest = line.split_once('"').map_or("", |(_, rest)| rest);
                Some((number + 1, code(rest)))
            }
            (false, _) => Some((number + 1, code(line))),
        }
    })
}

#[test]
fn names_in_code_use_the_words_of_the_glossary() {
    let mut breaches = Vec::new();
    for (file, text) in sources().iter().filter(|(file, _)| !file.contains(DRAWN)) {
        let stem = file.rsplit('/').next().unwrap_or(file);
        breaches.extend(names(stem).into_iter().filter_map(breach));
        for (number, line) in code_lines(text) {
            let wrong = names(&line).into_iter().filter_map(breach);
            breaches.extend(wrong.map(|why| format!("{file}:{number}: {why}")));
        }
    }
    assert_none(&breaches);
}

#[test]
fn metrics_labels_and_alerts_use_the_words_of_the_glossary() {
    let mut breaches = Vec::new();
    for file in LABELLED {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let wrong = names(&text).into_iter().filter_map(label_breach);
        breaches.extend(wrong.map(|why| format!("{file}: {why}")));
    }
    assert_none(&breaches);
}

#[test]
fn a_name_is_refused_in_every_spelling_and_comments_and_texts_are_free() {
    for refused in [
        "CageWall",
        "CAGE_WALL",
        "in_the_cage",
        "Turn",
        "turns",
        "NoPlace",
    ] {
        assert!(breach(refused).is_some(), "{refused}");
    }
    for free in ["turn_on", "cagey", "place", "multiply_in_place", "Doorway"] {
        assert!(breach(free).is_none(), "{free}");
    }
    let lines =
        "let a = \"cage\"; // cage\nlet b = \"one \\\n    cage\";\nlet c = '\"'; let cage = 1;\n";
    let found: Vec<usize> = code_lines(lines)
        .filter(|(_, line)| names(line).into_iter().any(|name| breach(name).is_some()))
        .map(|(number, _)| number)
        .collect();
    assert_eq!(found, [4]);
}
