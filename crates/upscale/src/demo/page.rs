//! The page that the demo leaves behind: both enlargements of each picture under a slider, at their own size, the failure
//! that cost nothing, and the ledger. One file that needs nothing but a browser.

use data_encoding::BASE64;
use serde_json::Value;
use upscale_image::raster::Rgb8;

use super::Compared;

const PAGE: &str = include_str!("page.html");

/// What the page tells.
pub(super) struct PageFacts<'a> {
    pub(super) summary: &'a str,
    pub(super) compared: &'a [Compared],
    pub(super) failure: &'a str,
    /// As `account ledger --json` gives it, newest first.
    pub(super) ledger: &'a Value,
}

/// The whole page.
pub(super) fn page(facts: &PageFacts<'_>) -> anyhow::Result<String> {
    let pictures: anyhow::Result<String> = facts.compared.iter().map(picture).collect();
    let lines = facts
        .ledger
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let ledger: String = lines.iter().map(line).collect();
    Ok(PAGE
        .replace("{{summary}}", &escape(facts.summary))
        .replace("{{failure}}", &escape(facts.failure))
        .replace("{{ledger}}", &ledger)
        .replace("{{pictures}}", &pictures?))
}

fn picture(compared: &Compared) -> anyhow::Result<String> {
    let Compared { name, scale, pair } = compared;
    let (name, width, height) = (escape(name), pair.ours.width(), pair.ours.height());
    let (x, y) = pair.most_telling();
    let data = |picture: &Rgb8| -> anyhow::Result<String> { Ok(BASE64.encode(&picture.to_png()?)) };
    let image = |class: &str, alt: &str, data: &str| {
        format!(
            r#"<img class="{class}" width="{width}" height="{height}" alt="{alt}" src="data:image/png;base64,{data}">"#
        )
    };
    Ok(format!(
        r#"<section class="compare" data-x="{x}" data-y="{y}"><h2>{name} at {scale}: {width} × {height} pixels, shown at 100 %</h2>
<div class="window" tabindex="0" role="region" aria-label="{name}, before and after"><div class="stack" style="width:{width}px;height:{height}px;--at:50%">{}{}<span class="line"></span></div></div>
<label class="slider"><span>bicubic</span><input type="range" min="0" max="1000" value="500" aria-label="How much of the bicubic picture is shown"><span>ours</span></label></section>
"#,
        image(
            "ours",
            &format!("{name} by this service"),
            &data(&pair.ours)?
        ),
        image(
            "over",
            &format!("{name} by bicubic interpolation"),
            &data(&pair.bicubic)?
        ),
    ))
}

fn line(line: &Value) -> String {
    let text = |name: &str| match &line[name] {
        Value::String(text) => escape(text),
        Value::Null => String::new(),
        other => escape(&other.to_string()),
    };
    let about = match text("task").is_empty() {
        true => text("reference"),
        false => text("task"),
    };
    format!(
        "<tr><td>{}</td><td>{}</td><td class=\"number\">{}</td><td>{about}</td></tr>\n",
        text("at"),
        text("kind"),
        text("amount"),
    )
}

/// As text of a page, and as the value of an attribute: names come from the user's files.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use upscale_core::Scale;
    use upscale_image::raster::Pair;

    use super::*;

    fn plain(value: u8) -> Rgb8 {
        Rgb8::paint(40, 40, |_, _| [value; 3])
    }

    fn page_of(compared: &[Compared]) -> String {
        let ledger =
            serde_json::json!([{ "kind": "<refund>", "at": "t", "amount": 0.7, "task": "ups_1" }]);
        let facts = PageFacts {
            summary: "s",
            compared,
            failure: "f",
            ledger: &ledger,
        };
        page(&facts).unwrap()
    }

    #[test]
    fn the_window_opens_where_the_two_differ_and_hostile_names_stay_text() {
        let changed = |x: usize, y: usize| if x > 600 && y > 700 { [200; 3] } else { [9; 3] };
        let pair = Pair {
            bicubic: Rgb8::paint(1_000, 1_000, |_, _| [9; 3]),
            ours: Rgb8::paint(1_000, 1_000, changed),
        };
        let compared = Compared {
            name: "<script>\"".to_owned(),
            scale: Scale::X4,
            pair,
        };
        let page = page_of(&[compared]);
        assert!(page.contains(r#"data-x="780" data-y="780""#));
        assert!(page.contains("&lt;script&gt;&quot; at 4x"));
        assert!(page.contains("&lt;refund&gt;") && !page.contains("{{"));
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let pair = || Pair {
            bicubic: plain(1),
            ours: plain(2),
        };
        let compared = ["a", "b"].map(|name| Compared {
            name: name.to_owned(),
            scale: Scale::X2,
            pair: pair(),
        });
        let page = page_of(&compared);
        assert!(!page.contains("http"), "one file that needs no network");
        assert_eq!(page.matches("src=\"data:image/png;base64,").count(), 4);
    }
}
