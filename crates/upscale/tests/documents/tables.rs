//! Tables that must hold what the code holds: the error codes.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use super::pages::{read, root};

/// Codes that belong to the result files' listener and to unknown addresses, which the description of the two endpoints
/// does not have.
const BEYOND_THE_ENDPOINTS: [&str; 4] = [
    "result_url_expired",
    "not_found",
    "method_not_allowed",
    "result_expired",
];

/// What stands between backquotes in one cell of each row of the page's tables.
fn cells(page: &str, cell: usize) -> BTreeSet<String> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.split('|').nth(cell + 1));
    cells
        .filter_map(|cell| cell.trim().strip_prefix('`')?.strip_suffix('`'))
        .map(str::to_owned)
        .collect()
}

/// Every code in the examples of the description's answers, with its status.
fn described() -> BTreeSet<(String, String)> {
    let text = fs::read_to_string(root().join("docs/openapi.json")).unwrap();
    let description: Value = serde_json::from_str(&text).unwrap();
    let mut found = BTreeSet::new();
    for path in description["paths"].as_object().unwrap().values() {
        for verb in path.as_object().unwrap().values() {
            for (status, answer) in verb["responses"].as_object().unwrap() {
                let examples = answer["content"]["application/json"]["examples"].as_object();
                for example in examples.into_iter().flatten().map(|(_, example)| example) {
                    let code = example["value"]["error"]["code"].as_str();
                    let code = code.filter(|_| !status.starts_with('2'));
                    found.extend(code.map(|code| (status.clone(), code.to_owned())));
                }
            }
        }
    }
    found
}

#[test]
fn every_error_has_its_row_and_no_row_is_of_none() {
    let page = read("docs/errors.md");
    let described = described();
    assert!(described.len() > 25, "{described:?}");
    for (status, code) in &described {
        let row = format!("`{code}` |");
        let is_there = page
            .text
            .lines()
            .any(|line| line.starts_with(&format!("| {status} |")) && line.contains(&row));
        assert!(is_there, "docs/errors.md lacks {status} {code}");
    }
    let codes: BTreeSet<_> = described.into_iter().map(|(_, code)| code).collect();
    let extra: Vec<_> = cells(&page.text, 2)
        .into_iter()
        .filter(|code| !codes.contains(code) && !BEYOND_THE_ENDPOINTS.contains(&code.as_str()))
        .collect();
    assert!(extra.is_empty(), "no such codes: {extra:?}");
    for code in BEYOND_THE_ENDPOINTS {
        assert!(page.text.contains(&format!("`{code}`")), "{code}");
    }
}
