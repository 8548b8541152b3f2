//! What the two endpoints take: path, headers and the create body.

use serde_json::json;
use upscale_core::limits;
use utoipa::openapi::{
    Content, Ref, Required,
    path::{Parameter, ParameterBuilder, ParameterIn},
    request_body::{RequestBody, RequestBodyBuilder},
    schema::{AdditionalProperties, Object, ObjectBuilder, Type},
};

/// The customer's parameters; what `create_body.rs` reads.
pub(super) fn create_schema() -> Object {
    ObjectBuilder::new()
        .description(Some("Which image to upscale, and how."))
        .property("image_url", image_url())
        .required("image_url")
        .property("scale", scale())
        .property("face_enhance", face_enhance())
        .property("output_format", output_format())
        .additional_properties(Some(AdditionalProperties::FreeForm(false)))
        .build()
}

/// The pattern is narrower than the rules in one point: names that are not public are not told apart.
fn image_url() -> Object {
    let host =
        r"([A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])";
    let suffix = r"\.([Jj][Pp][Ee]?[Gg]|[Pp][Nn][Gg]|[Ww][Ee][Bb][Pp])";
    let path = r"/[A-Za-z0-9._~!$&'()*+,;=:@/%-]*";
    let rest = r"(\?[A-Za-z0-9._~!$&'()*+,;=:@/?%-]*)?";
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(
            "Public HTTPS URL on port 443 with a DNS name, not an IP address. Its path ends in .jpg, \
             .jpeg, .png or .webp. The file is a JPEG, PNG or WebP of up to 20 MB. At 2x it has up to \
             1.5 MP (0.8 MP with face_enhance), at 4x up to 0.75 MP (0.5 MP with face_enhance).",
        ))
        .max_length(Some(limits::SOURCE_URL_BYTES_MAX))
        .pattern(Some(format!("^https://{host}(:443)?{path}{suffix}{rest}$")))
        .examples([json!("https://images.example.com/photo.jpg")])
        .build()
}

fn scale() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .description(Some("Scale factor of width and height."))
        .enum_values(Some([2, 4]))
        .default(Some(json!(2)))
        .build()
}

fn face_enhance() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Boolean)
        .description(Some("Enhances faces. Lowers the input size limits."))
        .default(Some(json!(false)))
        .build()
}

fn output_format() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("Result format. More formats may come later."))
        .enum_values(Some(["png"]))
        .default(Some(json!("png")))
        .build()
}

/// The body of a create request.
pub(super) fn create_body() -> RequestBody {
    let example = json!({"image_url": "https://images.example.com/photo.jpg", "scale": 2});
    let mut content = Content::new(Some(Ref::from_schema_name("CreateUpscaleBody")));
    content.example = Some(example);
    RequestBodyBuilder::new()
        .description(Some("One JSON object of at most 16 KiB."))
        .required(Some(Required::True))
        .content("application/json", content)
        .build()
}

/// The customer's name for the request.
pub(super) fn idempotency_key() -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(limits::IDEMPOTENCY_KEY_CHARS_MIN))
        .max_length(Some(limits::IDEMPOTENCY_KEY_CHARS_MAX))
        .pattern(Some("^[!-~]{8,128}$"));
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::True)
        .description(Some(
            "Identifies this image request. Use the same key when you retry it, a new key for a new request.",
        ))
        .schema(Some(schema))
        .build()
}

/// The task's name.
pub(super) fn task_id() -> Parameter {
    let id = ObjectBuilder::new().schema_type(Type::String);
    ParameterBuilder::new()
        .name("id")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some("ID of a task of this account."))
        .schema(Some(id))
        .build()
}

/// The state that the client knows.
pub(super) fn if_none_match() -> Parameter {
    let tag = ObjectBuilder::new().schema_type(Type::String);
    ParameterBuilder::new()
        .name("If-None-Match")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "ETag of an earlier response. 304 if the task has not changed.",
        ))
        .schema(Some(tag))
        .build()
}

/// How long the caller would like to be held. Any text: a preference is never a reason to refuse.
pub(super) fn prefer() -> Parameter {
    let preferences = ObjectBuilder::new()
        .schema_type(Type::String)
        .examples([json!("wait=30")]);
    ParameterBuilder::new()
        .name("Prefer")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "wait=N (RFC 7240): respond when the task has succeeded or failed, or after N seconds, at most 30. \
             Without it the response comes at once. Other preferences are ignored.",
        ))
        .schema(Some(preferences))
        .build()
}
