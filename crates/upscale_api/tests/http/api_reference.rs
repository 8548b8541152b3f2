//! `docs/api-reference.md` is made of the OpenAPI description and of programs that their languages' tools check, so that
//! people and programs read the same.

use std::{fmt::Write, fs, path::Path};

use serde_json::{Map, Value};

const HEAD: &str = "\
# API reference

The API has two endpoints: one creates a task, one reads it. The same description for programs is at `/openapi.json` of your service
([OpenAPI 3.1](openapi.json)).

- **Base URL**: your operator gives it to you.
- **Authentication**: `Authorization: Bearer <API_KEY>` on every request. Keep keys on servers, never in a browser or an app.
- **Values**: times are UTC. Credits are numbers with up to three decimals.
- **Errors**: [Errors and retries](errors.md) lists every code and what to do. [Limits and billing](limits-and-money.md) has the limits.
- **Result files** are at `result.url` and need no key. GET and HEAD, ranges and `ETag` work; follow redirects.
- **Health checks**: `GET /healthz` and `GET /readyz` need no key.
";

/// Fields as the contract lists them; a field that is not here fails the test.
const FIELD_ORDER: [&str; 21] = [
    "image_url",
    "scale",
    "face_enhance",
    "output_format",
    "id",
    "object",
    "status",
    "urls",
    "get",
    "result",
    "url",
    "format",
    "error",
    "type",
    "code",
    "message",
    "request_id",
    "usage",
    "credits_reserved",
    "credits_charged",
    "refund_status",
];

/// Objects from the request to the parts of the answers.
const OBJECT_ORDER: [&str; 13] = [
    "CreateUpscaleBody",
    "TaskBody",
    "ProcessingTask",
    "SucceededTask",
    "FailedTask",
    "Urls",
    "ResultLink",
    "Failure",
    "ReservedUsage",
    "ChargedUsage",
    "RefundedUsage",
    "ErrorBody",
    "ErrorFields",
];

/// Examples of a task in the order of its life.
const EXAMPLES: [(&str, &str); 4] = [
    ("processing", "Processing"),
    ("succeeded", "Succeeded"),
    ("failed, refund pending", "Failed, the refund is under way"),
    ("failed, refunded", "Failed and refunded"),
];

const CREATE_WITH_CURL: &str = r#"curl -s "$UPSCALE_API/api/v1/upscales" \
  -H "Authorization: Bearer $UPSCALE_API_KEY" \
  -H "Content-Type: application/json" \
  -H "Idempotency-Key: picture-0001" \
  -d '{"image_url": "https://images.example.com/photo.jpg", "scale": 2}'
"#;

const READ_WITH_CURL: &str = r#"curl -s "$UPSCALE_API/api/v1/upscales/ups_…" \
  -H "Authorization: Bearer $UPSCALE_API_KEY" -H "Prefer: wait=30"
"#;

/// One endpoint's programs: curl's is run by the test of the documents, the others are compiled by their own tools.
struct Programs {
    curl: &'static str,
    python: &'static str,
    typescript: &'static str,
    rust: &'static str,
}

const CREATE: Programs = Programs {
    curl: CREATE_WITH_CURL,
    python: include_str!("../../../../clients/python/tests/create_task.py"),
    typescript: include_str!("../../../../clients/typescript/example/create_task.ts"),
    rust: include_str!("../../../upscale_client/tests/example/create_task.rs"),
};

const READ: Programs = Programs {
    curl: READ_WITH_CURL,
    python: include_str!("../../../../clients/python/tests/read_task.py"),
    typescript: include_str!("../../../../clients/typescript/example/read_task.ts"),
    rust: include_str!("../../../upscale_client/tests/example/read_task.rs"),
};

/// Rewrites the committed page when `UPDATE_OPENAPI` is set, and fails when it differs otherwise.
#[test]
fn the_reference_for_people_is_made_of_the_description() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api-reference.md");
    let made = reference(&serde_json::from_str(&upscale_api::openapi_json()).unwrap());
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "docs/api-reference.md is stale; run: UPDATE_OPENAPI=1 cargo test -p upscale_api --test http reference"
    );
}

fn reference(description: &Value) -> String {
    let mut page = HEAD.to_owned();
    for (path, verbs) in object(&description["paths"]) {
        for (verb, operation) in object(verbs) {
            // As code: mdBook takes a heading's `{id}` for an attribute and drops it.
            page += &format!("\n## `{} {path}`\n", verb.to_uppercase());
            operation_of(&mut page, operation);
        }
    }
    page += "\n## Objects\n";
    let schemas = object(&description["components"]["schemas"]);
    assert_eq!(schemas.len(), OBJECT_ORDER.len(), "{schemas:?}");
    for name in OBJECT_ORDER {
        let schema = &schemas[name];
        page += &format!("\n### {name}\n\n{}\n", text(&schema["description"]));
        schema_of(&mut page, schema);
    }
    page
}

fn operation_of(page: &mut String, operation: &Value) {
    let (summary, words) = (&operation["summary"], &operation["description"]);
    write!(page, "\n{}. {}\n", text(summary), text(words)).unwrap();
    let is_create = operation["requestBody"].is_object();
    programs_of(page, if is_create { &CREATE } else { &READ });
    *page += "\n**Request**\n\n| parameter | in | required | |\n|---|---|---|---|\n";
    for parameter in operation["parameters"].as_array().unwrap() {
        let required = yes_or_no(parameter["required"] == true);
        let (name, place) = (text(&parameter["name"]), text(&parameter["in"]));
        let rule = rule(&parameter["schema"]);
        let words = sentence(&text(&parameter["description"]), &rule);
        writeln!(page, "| `{name}` | {place} | {required} | {words} |").unwrap();
    }
    if is_create {
        let body = &operation["requestBody"];
        let schema = link(&body["content"]["application/json"]["schema"]);
        write!(page, "\nBody: {schema}. {}\n", text(&body["description"])).unwrap();
    }
    answers_of(page, object(&operation["responses"]), is_create);
}

fn programs_of(page: &mut String, programs: &Programs) {
    for (name, language, program) in [
        ("curl", "sh", programs.curl),
        ("Python", "python", programs.python),
        ("TypeScript", "ts", programs.typescript),
        ("Rust", "rust", programs.rust),
    ] {
        let is_comment = |line: &&str| line.starts_with("//") || line.starts_with("# ");
        let lines: Vec<&str> = program.lines().skip_while(is_comment).collect();
        let program = lines.join("\n");
        write!(
            page,
            "\n{name}:\n\n```{language}\n{}\n```\n",
            program.trim()
        )
        .unwrap();
    }
}

fn answers_of(page: &mut String, answers: &Map<String, Value>, is_create: bool) {
    *page += "\n**Response**\n\n| status | | body | headers |\n|---|---|---|---|\n";
    for (status, answer) in answers {
        let headers = answer["headers"].as_object().into_iter().flatten();
        let names: Vec<_> = headers.map(|(name, _)| format!("`{name}`")).collect();
        let body = link(&answer["content"]["application/json"]["schema"]);
        let words = text(&answer["description"]);
        let names = names.join(", ");
        writeln!(page, "| {status} | {words} | {body} | {names} |").unwrap();
    }
    let first = answers.values().next().unwrap();
    let examples = object(&first["content"]["application/json"]["examples"]);
    assert_eq!(examples.len(), EXAMPLES.len(), "{examples:?}");
    // A create answers with a task that is processing, but for a replay; a read shows them all.
    for (name, words) in EXAMPLES.iter().take(if is_create { 1 } else { 4 }) {
        let shown = in_order(&examples[*name]["value"], 0);
        write!(page, "\n{words}:\n\n```json\n{shown}\n```\n").unwrap();
    }
}

fn schema_of(page: &mut String, schema: &Value) {
    if let Some(kinds) = schema["oneOf"].as_array() {
        let links: Vec<_> = kinds.iter().map(link).collect();
        writeln!(page, "\nOne of {}.", links.join(", ")).unwrap();
        return;
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    *page += "\n| field | type | required | |\n|---|---|---|---|\n";
    for (name, field) in fields(object(&schema["properties"])) {
        let required = yes_or_no(required.iter().any(|one| one == name));
        let kind = match link(field) {
            link if link.is_empty() => text(&field["type"]),
            link => link,
        };
        let words = sentence(&text(&field["description"]), &rule(field));
        writeln!(page, "| `{name}` | {kind} | {required} | {words} |").unwrap();
    }
}

/// The members of an object in the contract's order.
fn fields(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let place = |name: &str| {
        let place = FIELD_ORDER.iter().position(|field| *field == name);
        place.unwrap_or_else(|| panic!("{name} has no place in FIELD_ORDER"))
    };
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(name, _)| place(name));
    members
}

/// Indented JSON with its members in the contract's order.
fn in_order(value: &Value, depth: usize) -> String {
    let Some(members) = value.as_object() else {
        return value.to_string();
    };
    let indent = "  ".repeat(depth + 1);
    let members: Vec<_> = fields(members)
        .into_iter()
        .map(|(name, value)| format!("{indent}\"{name}\": {}", in_order(value, depth + 1)))
        .collect();
    format!("{{\n{}\n{}}}", members.join(",\n"), "  ".repeat(depth))
}

fn yes_or_no(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

/// Bounds, values and default, as far as a person wants them: patterns are for programs.
fn rule(schema: &Value) -> String {
    let mut rules = Vec::new();
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
        rules.push(values.join(" or "));
    }
    match (&schema["minLength"], &schema["maxLength"]) {
        (Value::Number(least), Value::Number(most)) => {
            rules.push(format!("{least} to {most} characters"));
        }
        (_, Value::Number(most)) => rules.push(format!("At most {most} characters")),
        _ => {}
    }
    if !schema["default"].is_null() {
        rules.push(format!("default `{}`", schema["default"]));
    }
    let rules = rules.join("; ");
    match rules.strip_prefix("default") {
        Some(rest) => format!("Default{rest}"),
        None => rules,
    }
}

fn sentence(words: &str, rule: &str) -> String {
    match rule {
        "" => words.to_owned(),
        rule => format!("{words} {rule}."),
    }
}

/// A link to the object that a schema refers to; empty for what is none.
fn link(schema: &Value) -> String {
    let name = schema["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next());
    name.map(|name| format!("[{name}](#{})", name.to_lowercase()))
        .unwrap_or_default()
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace('|', "\\|")
}
