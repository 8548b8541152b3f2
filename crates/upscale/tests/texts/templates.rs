//! The words of a page's template: its text and the attributes that people read or hear, without tags and conditions.

/// Attributes that hold words.
const READ_ALOUD: [&str; 5] = ["aria-label", "placeholder", "alt", "title", "data-label"];

/// Every piece of text in order, white space as one blank; `{{ value }}` stays.
pub(crate) fn words(template: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest
        .find('<')
        .or(Some(rest.len()))
        .filter(|_| !rest.is_empty())
    {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let (tag, after) = tag_and_after(rest);
        if !is_inline(tag) {
            push(&mut found, &text);
            text.clear();
        }
        for attribute in READ_ALOUD {
            if let Some(words) = value_of(tag, attribute) {
                push(&mut found, words);
            }
        }
        rest = if tag.starts_with("<style") || tag.starts_with("<script") {
            after.find("</").map_or("", |end| &after[end..])
        } else {
            after
        };
    }
    push(&mut found, &text);
    found
}

/// A tag, which may hold conditions with `>` in them, and what comes after it.
fn tag_and_after(text: &str) -> (&str, &str) {
    let (mut is_quoted, mut depth) = (false, 0_u32);
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '"' if depth == 0 => is_quoted = !is_quoted,
            '>' if depth == 0 && !is_quoted => return text.split_at(at + 1),
            _ => {}
        }
    }
    (text, "")
}

/// Whether the tag stands within a sentence.
fn is_inline(tag: &str) -> bool {
    let name = tag.trim_start_matches(['<', '/']);
    let name: String = name
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    matches!(
        name.as_str(),
        "a" | "b" | "code" | "em" | "kbd" | "span" | "strong" | "time"
    )
}

fn value_of<'a>(tag: &'a str, attribute: &str) -> Option<&'a str> {
    let (_, after) = tag.split_once(&format!(" {attribute}=\""))?;
    after.split_once('"').map(|(value, _)| value)
}

/// Keeps what has a letter outside of values and conditions.
fn push(found: &mut Vec<String>, text: &str) {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{%") {
        kept.push_str(before);
        kept.push(' ');
        rest = after.split_once("%}").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    let line = kept.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut outside = line.clone();
    while let (Some(start), Some(end)) = (outside.find("{{"), outside.find("}}")) {
        if end < start {
            break;
        }
        outside.replace_range(start..end + 2, "");
    }
    if outside.chars().any(char::is_alphabetic) && !found.contains(&line) {
        found.push(line);
    }
}

#[test]
fn sentences_stay_whole_and_conditions_go() {
    let page = r#"<style>p > a { color: red }</style><p>Buy <a href="/x"{% if a > 1 %} class="b"{% endif %}>credits</a>
        for {{ price }}.{% if more %} More.{% endif %}</p><input placeholder="A name"><p>{{ only }}</p>"#;
    assert_eq!(
        words(page),
        ["Buy credits for {{ price }}. More.", "A name"]
    );
}
