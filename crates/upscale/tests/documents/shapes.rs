//! Shapes of pages that readers rely on: a claim of the evidence is one short line, a decision fits one page.

use std::fs;

use super::pages::root;

/// The longest cell of a claim, in characters.
const CELL_MAX: usize = 200;
/// A page: lines, and characters altogether.
const DECISION_LINES_MAX: usize = 50;
const DECISION_CHARACTERS_MAX: usize = 4_500;
/// The head of every table of claims.
const CLAIMS: &str = "| claim | command | last figure | date, how |";

/// What is wrong with one line of the evidence.
fn breach_of_claim(line: &str) -> Option<String> {
    if !line.starts_with("| ") || line == CLAIMS {
        return None;
    }
    let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    let [claim, .., when] = cells.as_slice() else {
        return Some("no cells".to_owned());
    };
    if cells.len() != 4 {
        return Some(format!("{claim}: {} cells, not 4", cells.len()));
    }
    if let Some(cell) = cells.iter().find(|cell| cell.chars().count() > CELL_MAX) {
        let length = cell.chars().count();
        return Some(format!(
            "{claim}: a cell of {length} characters, at most {CELL_MAX}"
        ));
    }
    let is_date = |text: &str| {
        text.len() == 10
            && text
                .bytes()
                .all(|byte| byte == b'-' || byte.is_ascii_digit())
    };
    let date = when.split(';').next().unwrap_or_default();
    (!is_date(date)).then(|| format!("{claim}: {when:?} does not begin with a date"))
}

#[test]
fn every_claim_is_one_short_line_with_a_date() {
    let text = fs::read_to_string(root().join("docs/evidence.md")).unwrap();
    let breaches: Vec<_> = text.lines().filter_map(breach_of_claim).collect();
    let claims = text.lines().filter(|line| line.starts_with("| ")).count();
    assert!(claims > 100, "only {claims} claims");
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
    for line in text.lines().filter(|line| line.starts_with("| claim")) {
        assert_eq!(line, CLAIMS);
    }
}

#[test]
fn a_claim_that_is_long_or_undated_is_found() {
    let good = "| it works | `cargo test` | 3 tests | 2026-11-24; quiet |";
    assert_eq!(breach_of_claim(good), None);
    for bad in [
        good.replace("2026-11-24; quiet", "yesterday"),
        good.replace("3 tests", &"3 tests ".repeat(30)),
        good.replace(" | 3 tests", ""),
    ] {
        assert!(breach_of_claim(&bad).is_some(), "{bad}");
    }
}

#[test]
fn a_decision_has_context_choice_and_price_on_one_page() {
    let mut breaches = Vec::new();
    let mut decisions = 0;
    for entry in fs::read_dir(root().join("docs/decisions"))
        .unwrap()
        .flatten()
    {
        let name = entry.file_name().into_string().unwrap();
        let text = fs::read_to_string(entry.path()).unwrap();
        decisions += 1;
        for part in ["**Context", "**Choice", "**What we gave up"] {
            if !text.contains(part) {
                breaches.push(format!("{name}: no {part}"));
            }
        }
        let (lines, characters) = (text.lines().count(), text.chars().count());
        if lines > DECISION_LINES_MAX || characters > DECISION_CHARACTERS_MAX {
            breaches.push(format!(
                "{name}: {lines} lines, {characters} characters: more than a page"
            ));
        }
    }
    assert!(decisions > 30, "only {decisions} decisions");
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}
