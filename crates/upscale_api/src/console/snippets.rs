//! The lines that order one image from a program, with the project's own clients. Their texts are written so that a
//! hostile address stays one literal.

use upscale_core::Scale;

/// One language's lines.
pub(crate) struct Snippet {
    /// What the tab says.
    pub(crate) name: &'static str,
    /// Names it in the page.
    pub(crate) id: &'static str,
    pub(crate) text: String,
}

/// The order in four languages; the API key comes from the environment.
pub(crate) fn snippets(base_url: &str, image_url: &str, scale: Scale, faces: bool) -> [Snippet; 4] {
    let (base, image, factor) = (literal(base_url), literal(image_url), scale.factor());
    let snippet = |name, id, text| Snippet { name, id, text };
    [
        snippet("curl", "curl", curl(base_url, image_url, factor, faces)),
        snippet("Python", "python", python(&base, &image, factor, faces)),
        snippet(
            "TypeScript",
            "typescript",
            typescript(&base, &image, factor, faces),
        ),
        snippet("Rust", "rust", rust(&base, &image, factor, faces)),
    ]
}

fn python(base: &str, image: &str, factor: usize, faces: bool) -> String {
    let faces = if faces { "True" } else { "False" };
    format!(
        r#"import os
from pathlib import Path

from upscale_api import Upscale

with Upscale({base}, api_key=os.environ["UPSCALE_API_KEY"]) as upscale:
    task = upscale.upscale({image}, scale={factor}, face_enhance={faces})
    Path("result.png").write_bytes(task.download())
"#
    )
}

fn typescript(base: &str, image: &str, factor: usize, faces: bool) -> String {
    format!(
        r#"import {{ writeFile }} from "node:fs/promises";
import {{ Upscale }} from "upscale-api";

const upscale = new Upscale({{
  baseUrl: {base},
  apiKey: process.env["UPSCALE_API_KEY"]!,
}});
const task = await upscale.upscale({{
  imageUrl: {image},
  scale: {factor},
  faceEnhance: {faces},
}});
await writeFile("result.png", await task.download());
"#
    )
}

fn rust(base: &str, image: &str, factor: usize, faces: bool) -> String {
    format!(
        r#"use std::{{env, fs}};

use upscale_client::{{Client, Order}};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {{
    let key = env::var("UPSCALE_API_KEY")?;
    let client = Client::new({base}, &key)?;
    let order = Order::new({image})
        .scale({factor})
        .face_enhance({faces});
    let done = client.upscale(&order).await?;
    fs::write("result.png", client.download(&done).await?)?;
    Ok(())
}}
"#
    )
}

fn curl(base_url: &str, image_url: &str, factor: usize, faces: bool) -> String {
    let body = format!(
        "{{\"image_url\": {}, \"scale\": {factor}, \"face_enhance\": {faces}}}",
        literal(image_url)
    );
    format!(
        "curl {} \\\n  -H \"Authorization: Bearer $UPSCALE_API_KEY\" \\\n  -H \"Idempotency-Key: image-$(date +%s)-$RANDOM\" \\\n  \
         -H 'Content-Type: application/json' \\\n  -d {}",
        shell(&format!("{base_url}/api/v1/upscales")),
        shell(&body)
    )
}

/// As JSON, which is a string of Python, TypeScript and Rust too while it is printable ASCII, as source addresses are.
fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// As one word of a shell.
fn shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs that their languages' own tools check: the rooms' and clients' tests compile them.
    const PROGRAMS: [(&str, &str); 3] = [
        (
            "python",
            include_str!("../../../../clients/python/tests/one_image.py"),
        ),
        (
            "typescript",
            include_str!("../../../../clients/typescript/example/one_image.ts"),
        ),
        (
            "rust",
            include_str!("../../../upscale_client/tests/example/one_image.rs"),
        ),
    ];

    #[test]
    fn the_lines_are_those_of_programs_that_compile() {
        let url = "https://images.example.com/photo.jpg";
        let all = snippets("https://api.example.com", url, Scale::X4, true);
        for (id, program) in PROGRAMS {
            let shown = all.iter().find(|snippet| snippet.id == id).unwrap();
            let comment = |line: &&str| line.starts_with("//") || line.starts_with("# ");
            let lines: Vec<&str> = program.lines().skip_while(comment).collect();
            assert_eq!(shown.text.trim(), lines.join("\n").trim(), "{id}");
        }
    }

    #[test]
    fn a_hostile_address_stays_one_literal_in_every_language() {
        let url = "https://a.example.org/\"'$(id)`\\.png";
        let all = snippets("https://api.example.org", url, Scale::X4, true);
        let escaped = r#""https://a.example.org/\"'$(id)`\\.png""#;
        for snippet in &all[1..] {
            assert!(snippet.text.contains(escaped), "{}", snippet.text);
        }
        let word = r#"'{"image_url": "https://a.example.org/\"'\''$(id)`\\.png", "scale": 4, "face_enhance": true}'"#;
        assert!(all[0].text.ends_with(word), "{}", all[0].text);
        assert!(all[1].text.contains("face_enhance=True"));
    }
}
