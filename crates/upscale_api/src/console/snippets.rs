//! The lines that order one image from a program, with the project's own clients. Their texts are written so that a
//! hostile address stays one literal.

use upscale_core::Parameters;

use crate::clients::install_lines;

/// One language's lines.
pub(crate) struct Snippet {
    /// What the tab says.
    pub(crate) name: &'static str,
    /// Names it in the page.
    pub(crate) id: &'static str,
    pub(crate) text: String,
}

/// The order in four languages; the API key comes from the environment.
pub(crate) fn snippets(base_url: &str, image_url: &str, parameters: Parameters) -> [Snippet; 4] {
    let (base, image) = (literal(base_url), literal(image_url));
    let fields = parameters.fields();
    let [pip, npm] = install_lines(base_url);
    let snippet = |name, id, text| Snippet { name, id, text };
    [
        snippet("curl", "curl", curl(base_url, &image, &fields)),
        snippet(
            "Python",
            "python",
            format!("# {pip}\n{}", python(&base, &image, &fields)),
        ),
        snippet(
            "TypeScript",
            "typescript",
            format!("// {npm}\n{}", typescript(&base, &image, &fields)),
        ),
        snippet("Rust", "rust", rust(&base, &image, &fields)),
    ]
}

/// Names and JSON texts of the parameters.
type Fields = [(&'static str, String)];

/// Every field as one language writes it.
fn each(fields: &Fields, write: impl Fn(&str, &str) -> String) -> String {
    fields
        .iter()
        .map(|(name, json)| write(name, json))
        .collect()
}

fn python(base: &str, image: &str, fields: &Fields) -> String {
    let arguments = each(fields, |name, json| {
        let value = match json {
            "true" => "True",
            "false" => "False",
            number => number,
        };
        format!(", {name}={value}")
    });
    format!(
        r#"from upscale_api import Upscale

with Upscale({base}) as client:
    task = client.upscales.run({image}{arguments})
    client.upscales.download(task, "result.png")
"#
    )
}

fn typescript(base: &str, image: &str, fields: &Fields) -> String {
    let members = each(fields, |name, json| {
        format!("\n  {}: {json},", camel_case(name))
    });
    format!(
        r#"import {{ Upscale }} from "upscale-api";

const client = new Upscale({{ baseUrl: {base} }});
const task = await client.upscales.run({{
  imageUrl: {image},{members}
}});
await client.upscales.download(task, "result.png");
"#
    )
}

fn rust(base: &str, image: &str, fields: &Fields) -> String {
    let calls = each(fields, |name, json| format!("\n        .{name}({json})"));
    format!(
        r#"// cargo add upscale_client --path crates/upscale_client; cargo add tokio --features full
use std::env;

use upscale_client::{{Client, Order}};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {{
    let key = env::var("UPSCALE_API_KEY")?;
    let client = Client::new({base}, &key)?;
    let order = Order::new({image}){calls};
    let task = client.upscales().run(&order).await?;
    client.upscales().download_to(&task, "result.png").await?;
    Ok(())
}}
"#
    )
}

fn curl(base_url: &str, image: &str, fields: &Fields) -> String {
    let members = each(fields, |name, json| format!(", \"{name}\": {json}"));
    let body = format!("{{\"image_url\": {image}{members}}}");
    format!(
        "curl {} \\\n  -H \"Authorization: Bearer $UPSCALE_API_KEY\" \\\n  -H \"Idempotency-Key: image-$(date +%s)-$RANDOM\" \\\n  \
         -H 'Content-Type: application/json' -H 'Prefer: wait=30' \\\n  -d {}",
        shell(&format!("{base_url}/api/v1/upscales")),
        shell(&body)
    )
}

/// As JSON, which is a string of Python, TypeScript and Rust too while it is printable ASCII, as source addresses are.
fn literal(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// `face_enhance` as TypeScript names it: `faceEnhance`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |before, word| {
        let (initial, rest) = word.split_at(word.len().min(1));
        before + &initial.to_uppercase() + rest
    })
}

/// As one word of a shell.
fn shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use upscale_core::Scale;

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

    fn faces_at_4x() -> Parameters {
        Parameters {
            face_enhance: true,
            ..Parameters::at(Scale::X4)
        }
    }

    #[test]
    fn the_lines_are_those_of_programs_that_compile() {
        let url = "https://images.example.com/photo.jpg";
        let all = snippets("https://api.example.com", url, faces_at_4x());
        for (id, program) in PROGRAMS {
            let shown = all.iter().find(|snippet| snippet.id == id).unwrap();
            let is_comment = |line: &&str| line.starts_with("//") || line.starts_with("# ");
            let lines: Vec<&str> = program.lines().skip_while(is_comment).collect();
            // The first line says how the client is installed.
            let (install, text) = shown.text.split_once('\n').unwrap();
            assert!(is_comment(&install), "{install}");
            assert_eq!(text.trim(), lines.join("\n").trim(), "{id}");
        }
    }

    #[test]
    fn a_hostile_address_stays_one_literal_in_every_language() {
        let url = "https://a.example.org/\"'$(id)`\\.png";
        let all = snippets("https://api.example.org", url, faces_at_4x());
        let escaped = r#""https://a.example.org/\"'$(id)`\\.png""#;
        for snippet in &all[1..] {
            assert!(snippet.text.contains(escaped), "{}", snippet.text);
        }
        let word = r#"-d '{"image_url": "https://a.example.org/\"'\''$(id)`\\.png", "#;
        assert!(all[0].text.contains(word), "{}", all[0].text);
        let body: Vec<String> = faces_at_4x()
            .fields()
            .map(|(name, json)| format!("\"{name}\": {json}"))
            .to_vec();
        let end = format!(" {}}}'", body.join(", "));
        assert!(all[0].text.ends_with(&end), "{}", all[0].text);
        assert!(all[1].text.contains("face_enhance=True"));
    }
}
