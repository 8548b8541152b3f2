//! String literals of Rust source, without a parser: comments, characters and lifetimes are passed over.

/// Every string literal of the text, its escapes as written, line continuations joined.
pub(crate) fn literals(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(start) = rest.find(['"', '\'', '/', 'r']) {
        rest = &rest[start..];
        rest = if rest.starts_with("//") {
            rest.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(after) = rest.strip_prefix('"') {
            let (literal, after) = plain(after);
            found.push(joined(literal));
            after
        } else if let Some((literal, after)) = raw(rest) {
            found.push(literal.to_owned());
            after
        } else if rest.starts_with('\'') {
            after_character(rest)
        } else {
            &rest[1..]
        };
    }
    found
}

/// A literal whose opening quote was read, and what comes after it.
fn plain(text: &str) -> (&str, &str) {
    let mut is_escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            '"' if !is_escaped => return (&text[..at], &text[at + 1..]),
            _ => is_escaped = character == '\\' && !is_escaped,
        }
    }
    (text, "")
}

/// `r"…"` and `r#"…"#`.
fn raw(text: &str) -> Option<(&str, &str)> {
    let after = text.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    body.split_once(&format!("\"{}", &after[..hashes]))
}

/// What comes after a character such as `'"'` or `'\''`, or after the quote of a lifetime.
fn after_character(text: &str) -> &str {
    let mut characters = text.char_indices().skip(1);
    let end = match characters.next() {
        Some((_, '\\')) => characters.nth(1),
        _ => characters.next(),
    };
    match end {
        Some((at, '\'')) => &text[at + 1..],
        _ => &text[1..],
    }
}

/// The text of a literal that is broken by a backslash at a line's end.
fn joined(literal: &str) -> String {
    let mut lines = literal.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| text + line.trim_start())
}

#[test]
fn literals_are_found_between_comments_characters_and_lifetimes() {
    let source = r####"
        // "a comment"
        fn f<'a>(c: char) -> &'a str { if c == '"' || c == '\'' || c == '\\' { "first \"one\"" } else { "broken \
            line" } } /* no */ let r = r"raw \ one"; let s = r#"with "quotes""#;
    "####;
    let expected = [
        r#"first \"one\""#,
        "broken line",
        r"raw \ one",
        r#"with "quotes""#,
    ];
    assert_eq!(literals(source), expected);
}
