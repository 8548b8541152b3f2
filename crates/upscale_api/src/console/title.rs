//! What a task is called: the last part of its source's path, for people and for files.

use percent_encoding::percent_decode_str;
use upscale_core::SourceUrl;
use upscale_store::TaskRecord;

/// Longest title, and longest stem of a file's name, in characters.
const TITLE_CHARS_MAX: usize = 80;

/// `photo.jpg`, decoded; the address's host where the path ends in none.
pub(crate) fn title(source: &SourceUrl) -> String {
    let url = source.url();
    let last = url.path().rsplit('/').next().unwrap_or_default();
    let text = percent_decode_str(last).decode_utf8_lossy();
    let plain: String = text.chars().filter(|sign| !sign.is_control()).collect();
    shortened(&plain)
}

/// `photo-4x.png`: ASCII alone, so that every header can carry it and every system keeps it.
pub(crate) fn file_name(record: &TaskRecord) -> String {
    let title = title(&record.source_url);
    let stem = title
        .rsplit_once('.')
        .map_or(title.as_str(), |(stem, _)| stem);
    let plain = stem.chars().take(TITLE_CHARS_MAX).map(|sign| match sign {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => sign,
        _ => '-',
    });
    let plain: String = plain.collect();
    let stem = match plain.trim_matches('-') {
        "" => "image",
        stem => stem,
    };
    format!("{stem}-{}x.png", record.task.parameters.scale.factor())
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= TITLE_CHARS_MAX {
        return text.to_owned();
    }
    let start: String = text.chars().take(TITLE_CHARS_MAX - 1).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_last_part_of_the_path_as_people_read_it() {
        let long = format!("https://a.example.org/{}.png", "x".repeat(200));
        for (url, expected) in [
            ("https://a.example.org/b/photo.jpg?width=3", "photo.jpg"),
            (
                "https://a.example.org/caf%C3%A9%20noir.png",
                "café noir.png",
            ),
            ("https://a.example.org/%00%0A%FF.png", "\u{fffd}.png"),
            ("https://a.example.org/.png", ".png"),
        ] {
            assert_eq!(title(&SourceUrl::parse(url).unwrap()), expected);
        }
        let title = title(&SourceUrl::parse(&long).unwrap());
        assert!(title.chars().count() == 80 && title.ends_with('…'));
    }
}
