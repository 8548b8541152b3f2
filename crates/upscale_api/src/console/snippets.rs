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
    let python_faces = if faces { "True" } else { "False" };
    [
        Snippet {
            name: "curl",
            id: "curl",
            text: curl(base_url, image_url, factor, faces),
        },
        Snippet {
            name: "Python",
            id: "python",
            text: format!(
                "import os\nfrom upscale_api import Upscale\n\n\
                 with Upscale({base}, api_key=os.environ[\"UPSCALE_API_KEY\"]) as upscale:\n\
                 \x20   task = upscale.upscale({image}, scale={factor}, face_enhance={python_faces})\n\
                 \x20   open(\"result.png\", \"wb\").write(task.download())"
            ),
        },
        Snippet {
            name: "TypeScript",
            id: "typescript",
            text: format!(
                "import {{ writeFile }} from \"node:fs/promises\";\nimport {{ Upscale }} from \"upscale-api\";\n\n\
                 const upscale = new Upscale({{ baseUrl: {base}, apiKey: process.env.UPSCALE_API_KEY! }});\n\
                 const task = await upscale.upscale({{ imageUrl: {image}, scale: {factor}, faceEnhance: {faces} }});\n\
                 await writeFile(\"result.png\", await task.download());"
            ),
        },
        Snippet {
            name: "Rust",
            id: "rust",
            text: format!(
                "use upscale_client::{{Client, Order}};\n\n\
                 let client = Client::new({base}, &std::env::var(\"UPSCALE_API_KEY\")?)?;\n\
                 let order = Order::new({image}).scale({factor}).face_enhance({faces});\n\
                 let done = client.upscale(&order).await?;\n\
                 std::fs::write(\"result.png\", client.download(&done).await?)?;"
            ),
        },
    ]
}

fn curl(base_url: &str, image_url: &str, factor: usize, faces: bool) -> String {
    let body = format!(
        "{{\"image_url\": {}, \"scale\": {factor}, \"face_enhance\": {faces}}}",
        literal(image_url)
    );
    format!(
        "curl {} \\\n  -H \"Authorization: Bearer $UPSCALE_API_KEY\" \\\n  -H \"Idempotency-Key: $(uuidgen)\" \\\n  \
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
