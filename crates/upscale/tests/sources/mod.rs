//! The project's own Rust sources, as the tests read them that judge texts and not behaviour.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The project's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Rust source: its path from the project's folder, and its text.
pub(crate) fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![root().join("crates")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && entry.file_name() != "target" {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path
                    .strip_prefix(root())
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(
        found.len() > 20,
        "only {} sources found: the walk is broken",
        found.len()
    );
    found
}

/// The lines of a source outside its unit tests, which may do what the product must not, with their numbers. Only a
/// module is left out: a field or a function that tests alone need stands among the product's and keeps its rules.
pub(crate) fn product_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut is_for_tests, mut in_tests) = (false, false);
    text.lines().enumerate().filter_map(move |(number, line)| {
        if in_tests {
            in_tests = line != "}";
            return None;
        }
        let words = line.trim_start_matches("pub(crate) ");
        if is_for_tests && words.starts_with("mod ") {
            // Without a body it is a file of its own.
            in_tests = line.ends_with('{');
            is_for_tests = false;
            return None;
        }
        is_for_tests = line == "#[cfg(test)]" || is_for_tests && line.starts_with("#[");
        Some((number + 1, line))
    })
}

#[test]
fn only_test_modules_are_left_out_of_the_product() {
    let text = "fn a() {}\n#[cfg(test)]\nfn b() {}\n#[cfg(test)]\n#[path = \"x\"]\nmod c;\nfn d() {}\n\
                #[cfg(test)]\nmod tests {\n    fn e() {\n    }\n}\nfn f() {}\n";
    let functions: Vec<&str> = product_lines(text)
        .filter_map(|(_, line)| line.strip_prefix("fn "))
        .collect();
    assert_eq!(functions, ["a() {}", "b() {}", "d() {}", "f() {}"]);
}
