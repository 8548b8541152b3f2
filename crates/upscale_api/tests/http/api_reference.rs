//! `docs/api-reference.md` is made of the OpenAPI description, so that people and programs are told the same.

use std::{fmt::Write, fs, path::Path};

use serde_json::{Map, Value};

const HEAD: &str = "\
# API reference

Made of [openapi.json](openapi.json) by `UPDATE_OPENAPI=1 cargo test -p upscale_api --test http reference`; do not edit it by
hand. The service serves the same description at `/openapi.json`.

Paths are below the address that your operator gives you. Every request needs `Authorization: Bearer <API_KEY>`; keys belong on
servers, never in a browser or an app. Times are UTC, credits are numbers with up to three decimals. What each error means and
what to do: [Errors and retries](errors.md); what things cost and how much is allowed: [Limits and money](limits-and-money.md).

`GET /healthz` and `GET /readyz` are for balancers and need no key. Result files come from the address in `result.url`, which
needs no key either: GET and HEAD, ranges, `ETag`; follow redirects.
";

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
            page += &format!("\n## {} {path}\n", verb.to_uppercase());
            operation_of(&mut page, operation);
        }
    }
    page += "\n## Objects\n";
    for (name, schema) in object(&description["components"]["schemas"]) {
        page += &format!("\n### {name}\n\n{}\n", text(&schema["description"]));
        schema_of(&mut page, schema);
    }
    page
}

fn operation_of(page: &mut String, operation: &Value) {
    let (summary, words) = (&operation["summary"], &operation["description"]);
    write!(page, "\n{}.", text(summary)).unwrap();
    if words.is_string() {
        write!(page, " {}", text(words)).unwrap();
    }
    *page += "\n\n| parameter | in | required | |\n|---|---|---|---|\n";
    for parameter in operation["parameters"].as_array().unwrap() {
        let required = if parameter["required"] == true {
            "yes"
        } else {
            "no"
        };
        let (name, place) = (text(&parameter["name"]), text(&parameter["in"]));
        let rule = rule(&parameter["schema"]);
        let words = sentence(&text(&parameter["description"]), &rule);
        writeln!(page, "| `{name}` | {place} | {required} | {words} |").unwrap();
    }
    let body = &operation["requestBody"];
    if body.is_object() {
        let content = &body["content"]["application/json"];
        let schema = link(&content["schema"]);
        let example = serde_json::to_string(&content["example"]).unwrap();
        let words = text(&body["description"]);
        write!(
            page,
            "\nBody: {schema}. {words}\n\n```json\n{example}\n```\n"
        )
        .unwrap();
    }
    *page += "\n| status | | body | headers |\n|---|---|---|---|\n";
    for (status, answer) in object(&operation["responses"]) {
        let headers = answer["headers"].as_object();
        let names = headers
            .into_iter()
            .flatten()
            .map(|(name, _)| format!("`{name}`"));
        let names: Vec<_> = names.collect();
        let body = link(&answer["content"]["application/json"]["schema"]);
        let words = text(&answer["description"]);
        writeln!(
            page,
            "| {status} | {words} | {body} | {} |",
            names.join(", ")
        )
        .unwrap();
    }
    let first = object(&operation["responses"]).iter().next().unwrap().1;
    let examples = first["content"]["application/json"]["examples"].as_object();
    for (name, example) in examples.into_iter().flatten() {
        let shown = serde_json::to_string_pretty(&example["value"]).unwrap();
        write!(page, "\nA task that is {name}:\n\n```json\n{shown}\n```\n").unwrap();
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
    for (name, field) in object(&schema["properties"]) {
        let is_required = if required.iter().any(|one| one == name) {
            "yes"
        } else {
            "no"
        };
        let kind = match link(field) {
            link if link.is_empty() => text(&field["type"]),
            link => link,
        };
        let words = sentence(&text(&field["description"]), &rule(field));
        writeln!(page, "| `{name}` | {kind} | {is_required} | {words} |").unwrap();
    }
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
        (_, Value::Number(most)) => rules.push(format!("at most {most} characters")),
        _ => {}
    }
    if !schema["default"].is_null() {
        rules.push(format!("default `{}`", schema["default"]));
    }
    rules.join("; ")
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
