//! The API's reference, rendered from the very OpenAPI document that the API serves, and a quick start with this
//! service's own address.

use std::sync::LazyLock;

use askama::Template;
use axum::{extract::State, http::StatusCode, response::Response};
use serde_json::Value;
use upscale_core::{Parameters, SAMPLES};

use super::{
    page::{Layout, show},
    session::SignedIn,
    snippets::{Snippet, snippets},
    state::ConsoleState,
};
use crate::openapi::openapi_json;

#[derive(Template)]
#[template(path = "console/docs.html")]
struct DocsPage {
    layout: Layout,
    base_url: String,
    snippets: [Snippet; 4],
    reference: &'static Reference,
}

/// The document in the order it is read.
pub(crate) struct Reference {
    pub(crate) operations: Vec<Operation>,
    pub(crate) schemas: Vec<Schema>,
}

/// One method of one path.
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) summary: String,
    pub(crate) description: String,
    pub(crate) parameters: Vec<Field>,
    /// An example of the body, where it takes one.
    pub(crate) body: Option<String>,
    pub(crate) answers: Vec<Answer>,
}

/// One status.
pub(crate) struct Answer {
    pub(crate) status: String,
    pub(crate) description: String,
}

/// One object of the document.
pub(crate) struct Schema {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) fields: Vec<Field>,
}

/// A parameter or a field.
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) is_required: bool,
    pub(crate) description: String,
}

static REFERENCE: LazyLock<Reference> = LazyLock::new(|| {
    let document = serde_json::from_str(&openapi_json()).unwrap_or_default();
    Reference::of(&document)
});

/// `GET /docs`.
pub(crate) async fn docs(State(state): State<ConsoleState>, who: SignedIn) -> Response {
    // A sample: the lines work as they stand.
    let example = &SAMPLES[0].url();
    let page = DocsPage {
        layout: Layout::new(&who.visitor, "/docs", "Docs"),
        base_url: state.api.base_url.to_string(),
        snippets: snippets(&state.api.base_url, example, Parameters::default()),
        reference: &REFERENCE,
    };
    show(StatusCode::OK, &page)
}

impl Reference {
    fn of(document: &Value) -> Self {
        let mut operations = Vec::new();
        for (path, methods) in members(&document["paths"]) {
            for (method, operation) in members(methods) {
                operations.push(operation_of(path, method, operation));
            }
        }
        let schemas = members(&document["components"]["schemas"]);
        Self {
            operations,
            schemas: schemas
                .map(|(name, schema)| schema_of(name, schema))
                .collect(),
        }
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn operation_of(path: &str, method: &str, operation: &Value) -> Operation {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let example = &operation["requestBody"]["content"]["application/json"]["example"];
    Operation {
        id: text(&operation["operationId"]),
        method: method.to_uppercase(),
        path: path.to_owned(),
        summary: text(&operation["summary"]),
        description: text(&operation["description"]),
        parameters: parameters
            .map(|parameter| Field {
                name: text(&parameter["name"]),
                kind: text(&parameter["in"]),
                is_required: parameter["required"] == true,
                description: text(&parameter["description"]),
            })
            .collect(),
        body: serde_json::to_string_pretty(example)
            .ok()
            .filter(|_| example.is_object()),
        answers: members(&operation["responses"])
            .map(|(status, answer)| Answer {
                status: status.clone(),
                description: text(&answer["description"]).replace('`', ""),
            })
            .collect(),
    }
}

fn schema_of(name: &str, schema: &Value) -> Schema {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let one_of = schema["oneOf"].as_array().into_iter().flatten();
    let fields = members(&schema["properties"]).map(|(field, value)| Field {
        name: field.clone(),
        kind: kind_of(value),
        is_required: required.iter().any(|name| name == field),
        description: text(&value["description"]),
    });
    let choices = one_of.map(|value| Field {
        name: "one of".to_owned(),
        kind: kind_of(value),
        is_required: false,
        description: text(&value["description"]),
    });
    Schema {
        name: name.to_owned(),
        description: text(&schema["description"]),
        fields: fields.chain(choices).collect(),
    }
}

/// A type in words: another object's name, the allowed values, or the JSON type.
fn kind_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or(name).to_owned();
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        return values.join(" or ");
    }
    text(&schema["type"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_document_is_left_out() {
        let document: Value = serde_json::from_str(&openapi_json()).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        assert_eq!(REFERENCE.schemas.len(), schemas.len());
        let ids: Vec<&str> = REFERENCE
            .operations
            .iter()
            .map(|one| one.id.as_str())
            .collect();
        assert_eq!(ids, ["create_upscale", "get_upscale"]);
        for operation in &REFERENCE.operations {
            let described = &document["paths"][&operation.path][operation.method.to_lowercase()];
            let answers = described["responses"].as_object().unwrap();
            assert_eq!(operation.answers.len(), answers.len());
            let parameters = described["parameters"].as_array().unwrap();
            assert_eq!(operation.parameters.len(), parameters.len());
            assert!(
                operation
                    .answers
                    .iter()
                    .all(|answer| !answer.description.is_empty())
            );
        }
        let all = REFERENCE.schemas.iter().flat_map(|schema| &schema.fields);
        assert!(all.filter(|field| field.kind.is_empty()).count() == 0);
    }
}
