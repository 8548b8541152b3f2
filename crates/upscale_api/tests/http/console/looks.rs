//! What a machine can say of looks: contrast, sizes, that nothing is loaded from elsewhere, that every field has a label.

use std::{collections::BTreeMap, fs};

use super::browser::{Console, Page, with_console};

const STYLE: &str = "assets/console.css";

fn style() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(STYLE);
    fs::read_to_string(path).unwrap()
}

/// The colours of the first `:root` block after `start`.
fn colours(style: &str, start: &str) -> BTreeMap<String, [f64; 3]> {
    let (_, rest) = style.split_once(start).unwrap();
    let (_, rest) = rest.split_once(":root {").unwrap();
    let (block, _) = rest.split_once('}').unwrap();
    let lines = block
        .lines()
        .filter_map(|line| line.trim().strip_prefix("--"));
    lines
        .filter_map(|line| line.trim_end_matches(';').split_once(": #"))
        .map(|(name, hex)| {
            let channel =
                |at: usize| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            (name.to_owned(), [channel(0), channel(2), channel(4)])
        })
        .collect()
}

/// WCAG 2.2, relative luminance and contrast ratio.
fn ratio(one: [f64; 3], other: [f64; 3]) -> f64 {
    let luminance = |colour: [f64; 3]| {
        let [r, g, b] = colour.map(|c| {
            if c <= 0.04045 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let (a, b) = (luminance(one), luminance(other));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn text_and_edges_have_the_contrast_of_wcag_aa_in_light_and_in_dark() {
    assert!((ratio([1.0; 3], [0.0; 3]) - 21.0).abs() < 1e-9);
    let style = style();
    for (theme, start) in [("light", ""), ("dark", "prefers-color-scheme: dark")] {
        let colours = colours(&style, start);
        assert!(colours.len() >= 12, "{theme}: {colours:?}");
        let mut pairs = vec![("on-accent", "accent", 4.5), ("on-bad", "bad", 4.5)];
        for ground in ["ground", "surface", "raised"] {
            for text in ["text", "muted", "accent", "good", "bad", "warn"] {
                pairs.push((text, ground, 4.5));
            }
            // Edges of fields, the ring of the focus, bars of charts: 1.4.11 wants 3.
            for mark in ["edge", "focus", "accent", "bad"] {
                pairs.push((mark, ground, 3.0));
            }
        }
        for (one, other, least) in pairs {
            let found = ratio(colours[one], colours[other]);
            assert!(
                found >= least,
                "{theme}: {one} on {other} has {found:.2}, {least} is wanted"
            );
        }
    }
}

#[test]
fn colours_stand_in_the_two_blocks_alone_and_nothing_is_loaded() {
    let style = style();
    assert!(!style.contains("url(") && !style.contains("@import"));
    let (_, rest) = style.split_once("* { box-sizing").unwrap();
    let loose: Vec<&str> = rest
        .lines()
        // What lies over a picture is black on white in both themes.
        .filter(|line| line.contains('#') && !line.starts_with(".compare"))
        .collect();
    assert_eq!(loose, Vec::<&str>::new());
}

#[tokio::test]
async fn every_page_has_one_heading_a_language_and_a_label_for_each_field() {
    with_console(async |console: &Console<'_>| {
        let mut ann = console.signed_up("ann").await;
        console.pay("ann", "10").await;
        let mut guest = console.browser("192.0.2.2");
        let mut pages = Vec::new();
        for path in ["/sign-in", "/sign-up", "/reset", "/nothing"] {
            pages.push((path, guest.get(path).await));
        }
        for path in [
            "/",
            "/keys",
            "/credits",
            "/tasks",
            "/playground",
            "/docs",
            "/settings",
        ] {
            pages.push((path, ann.get(path).await));
        }
        for (path, page) in pages {
            check_looks(path, &page);
        }
    })
    .await;
}

/// What a machine can say of any page.
pub(crate) fn check_looks(path: &str, page: &Page) {
    page.has("<html lang=\"en\">");
    page.has("name=\"viewport\"");
    assert_eq!(page.text.matches("<h1").count(), 1, "{path}");
    for place in [
        "src=\"",
        "action=\"",
        "<link rel=\"stylesheet\" href=\"",
        "<link rel=\"icon\" href=\"",
    ] {
        for rest in page.text.split(place).skip(1) {
            assert!(
                rest.starts_with('/'),
                "{path}: {place}{}",
                &rest[..40.min(rest.len())]
            );
        }
    }
    for field in page
        .text
        .split("<input ")
        .skip(1)
        .chain(page.text.split("<select ").skip(1))
    {
        let tag = field.split('>').next().unwrap();
        let is_quiet = [
            "type=\"hidden\"",
            "type=\"radio\"",
            "type=\"checkbox\"",
            "type=\"range\"",
        ];
        if is_quiet.iter().any(|kind| tag.contains(kind)) {
            continue;
        }
        let id = tag
            .split("id=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        page.has(&format!("<label for=\"{id}\">"));
    }
}
