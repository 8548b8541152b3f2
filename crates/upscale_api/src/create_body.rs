//! The create request's body: JSON text to [`NewTask`], doubt to type.
//!
//! Which of several faults is named: media type, size, JSON (duplicate fields included), then unknown and
//! callback fields in the order sent, then `image_url` missing, the parameters in the order of [`Parameters`],
//! `output_format`; then the caller checks `Idempotency-Key`; then what is wrong with `image_url` itself.

use std::fmt;

use axum::http::{HeaderMap, header};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use upscale_core::{InvalidRequest, NewTask, Parameters, SourceUrl};

use crate::request_body::check_not_encoded;

/// Characters of a name that an error repeats.
const NAME_CHARS_MAX: usize = 64;
const CALLBACKS: [&str; 4] = ["callback_url", "webhook_url", "webhook", "callback"];

/// A body whose every field but `image_url` is known to be right.
#[derive(Debug)]
pub(crate) struct CreateBody {
    image_url: Box<RawValue>,
    parameters: Parameters,
}

impl CreateBody {
    /// Parses the body of a request with these headers.
    pub(crate) fn parse(headers: &HeaderMap, body: &[u8]) -> Result<Self, InvalidRequest> {
        check_media_type(headers)?;
        check_not_encoded(headers)?;
        let Fields(fields) = parse_object(body)?;
        for (name, _) in &fields {
            check_name(name)?;
        }
        let find = |name: &str| {
            fields
                .iter()
                .find(|(found, _)| found == name)
                .map(|(_, raw)| raw)
        };
        let image_url = find("image_url").ok_or(InvalidRequest::MissingImageUrl)?;
        let parameters = Parameters::parse(|name| find(name).map(|raw| raw.get()))?;
        find("output_format").map_or(Ok(()), |raw| check_output_format(raw))?;
        Ok(Self {
            image_url: image_url.clone(),
            parameters,
        })
    }

    /// Checks the address, last of all.
    pub(crate) fn into_task(self) -> Result<NewTask, InvalidRequest> {
        let text: String = serde_json::from_str(self.image_url.get())
            .map_err(|_| InvalidRequest::ImageUrl("it must be a string"))?;
        Ok(NewTask {
            source_url: SourceUrl::parse(&text)?,
            parameters: self.parameters,
        })
    }
}

/// `application/json`, once; the only charset is UTF-8 (RFC 8259).
fn check_media_type(headers: &HeaderMap) -> Result<(), InvalidRequest> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let value = values.next().and_then(|value| value.to_str().ok());
    let mut pieces = value.unwrap_or_default().split(';').map(str::trim);
    let is_json = pieces
        .next()
        .is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
    let is_utf8 = pieces.all(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        !name.eq_ignore_ascii_case("charset")
            || value.trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    if is_json && is_utf8 && values.next().is_none() {
        return Ok(());
    }
    Err(InvalidRequest::ContentType)
}

/// The fields of one object in the order sent, each value as its own text. The reader keeps no tree and
/// does not recurse, so nesting costs nothing.
#[derive(Debug)]
struct Fields(Vec<(String, Box<RawValue>)>);

fn parse_object(body: &[u8]) -> Result<Fields, InvalidRequest> {
    let invalid = |what: &str| InvalidRequest::Json(what.to_owned());
    let text = std::str::from_utf8(body).map_err(|_| invalid("it is not UTF-8"))?;
    if text.starts_with('\u{feff}') {
        return Err(invalid("it starts with a byte order mark"));
    }
    match text
        .trim_start_matches([' ', '\t', '\r', '\n'])
        .chars()
        .next()
    {
        None => Err(invalid("it is empty")),
        Some('{') => serde_json::from_str(text)
            .map_err(|error: serde_json::Error| InvalidRequest::Json(error.to_string())),
        Some(_) => Err(invalid("it does not start with {")),
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields: Vec<(String, Box<RawValue>)> = Vec::new();
        // Two loops over at most 16 KiB of names would still be a quarter of a million comparisons.
        let mut seen = std::collections::HashSet::new();
        while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
            if !seen.insert(name.clone()) {
                let name = shortened(&name);
                return Err(A::Error::custom(format!("the field {name} appears twice")));
            }
            fields.push((name, value));
        }
        Ok(Fields(fields))
    }
}

fn check_name(name: &str) -> Result<(), InvalidRequest> {
    let parameters = Parameters::default().fields();
    match name {
        "image_url" | "output_format" => Ok(()),
        _ if parameters.iter().any(|(known, _)| *known == name) => Ok(()),
        _ if CALLBACKS.contains(&name) => Err(InvalidRequest::Callback(name.to_owned())),
        _ => Err(InvalidRequest::UnknownParameter(shortened(name))),
    }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_CHARS_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_CHARS_MAX).chain(['…']).collect()
}

fn check_output_format(raw: &RawValue) -> Result<(), InvalidRequest> {
    match serde_json::from_str::<String>(raw.get()) {
        Ok(format) if format == "png" => Ok(()),
        _ => Err(InvalidRequest::OutputFormat),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use upscale_core::Scale;

    use super::*;

    const URL: &str = "https://a.example.org/a.png";

    fn answer(body: &[u8]) -> Result<NewTask, InvalidRequest> {
        let mut headers = HeaderMap::new();
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
        CreateBody::parse(&headers, body).and_then(CreateBody::into_task)
    }

    /// The code of the answer to the fields given beside a good `image_url`.
    fn code_with(fields: &str) -> &'static str {
        let body = format!(r#"{{"image_url":"{URL}",{fields}}}"#);
        answer(body.as_bytes()).map_or_else(|error| error.code(), |_| "accepted")
    }

    #[test]
    fn defaults_are_2x_without_face_enhance() {
        let task = answer(format!(r#"{{"image_url":"{URL}"}}"#).as_bytes()).unwrap();
        assert_eq!(task.parameters, Parameters::at(Scale::X2));
        let all = format!(
            r#" {{"output_format":"png","face_enhance":true,"scale":4,"image_url":"{URL}"}} "#
        );
        let task = answer(all.as_bytes()).unwrap();
        let faces = Parameters {
            face_enhance: true,
            ..Parameters::at(Scale::X4)
        };
        assert_eq!(task.parameters, faces);
        assert_eq!(task.source_url.as_str(), URL);
    }

    #[test]
    fn scale_is_any_spelling_of_the_numbers_2_and_4() {
        for good in ["2", "4", "2.0", "4.00", "2e0", "0.4e1", "40E-1", "20.0e-1"] {
            assert_eq!(
                code_with(&format!(r#""scale":{good}"#)),
                "accepted",
                "{good}"
            );
        }
        for bad in [
            "\"2\"",
            "2.5",
            "3",
            "0",
            "-2",
            "-4",
            "1e400",
            "2e1",
            "null",
            "true",
            "[2]",
            "{}",
            "2.0000001",
            "99999999999999999999999999",
        ] {
            assert_eq!(
                code_with(&format!(r#""scale":{bad}"#)),
                "invalid_scale",
                "{bad}"
            );
        }
    }

    #[test]
    fn the_other_fields_take_their_own_type_alone() {
        for bad in ["null", "0", "1", "\"true\"", "[]", "{}"] {
            let field = format!(r#""face_enhance":{bad}"#);
            assert_eq!(code_with(&field), "invalid_face_enhance", "{bad}");
        }
        for bad in [
            "null",
            "0",
            "true",
            "\"PNG\"",
            "\"jpeg\"",
            "\"\"",
            "[\"png\"]",
        ] {
            let field = format!(r#""output_format":{bad}"#);
            assert_eq!(code_with(&field), "invalid_output_format", "{bad}");
        }
        for bad in ["null", "0", "true", "\"\"", "[]", "\"\\ud800\""] {
            let error = answer(format!(r#"{{"image_url":{bad}}}"#).as_bytes()).unwrap_err();
            assert_eq!(error.code(), "invalid_image_url", "{bad}");
        }
        assert_eq!(answer(b"{}").unwrap_err(), InvalidRequest::MissingImageUrl);
    }

    #[test]
    fn unknown_and_callback_fields_are_named() {
        for name in CALLBACKS {
            let error = answer(format!(r#"{{"{name}":"https://a.org"}}"#).as_bytes()).unwrap_err();
            assert_eq!(error, InvalidRequest::Callback(name.to_owned()));
        }
        for name in ["Scale", "image-url", "", "webhooks"] {
            let error = answer(format!(r#"{{"{name}":1}}"#).as_bytes()).unwrap_err();
            assert_eq!(error, InvalidRequest::UnknownParameter(name.to_owned()));
        }
        let long = answer(format!(r#"{{"{}":1}}"#, "é".repeat(1_000)).as_bytes()).unwrap_err();
        assert!(long.to_string().len() < 200, "{long}");
    }

    #[test]
    fn what_is_not_one_json_object_with_each_field_once_is_invalid_json() {
        let deep = [b"{\"a\":".repeat(2_000), b"1".to_vec()].concat();
        for body in [
            &b""[..],
            b"  \r\n",
            b"null",
            b"[]",
            b"\"x\"",
            b"2",
            b"{",
            b"}",
            b"{}{}",
            b"{} x",
            b"{},",
            b"{\"scale\":2,}",
            b"{\"scale\":02}",
            b"{\"scale\":+2}",
            b"{\"scale\":.5}",
            b"{\"scale\":NaN}",
            b"{'scale':2}",
            b"{scale:2}",
            b"{\"scale\":2 \"x\":1}",
            b"{\"scale\":2,\"scale\":2}",
            b"{\"scale\":2,\"\\u0073cale\":4}",
            b"{\"x\":1,\"x\":1}",
            b"{\"a\":\"line\nbreak\"}",
            b"{\"a\":\"\xff\"}",
            b"\xef\xbb\xbf{}",
            b"\xff\xfe{\0}\0",
            b"// x\n{}",
            &deep,
        ] {
            let error = answer(body).unwrap_err();
            assert_eq!(
                error.code(),
                "invalid_json",
                "{:?}",
                String::from_utf8_lossy(body)
            );
            assert!(error.to_string().len() < 250, "{error}");
        }
    }

    #[test]
    fn deep_nesting_costs_no_stack() {
        let open = "[".repeat(8_000);
        let close = "]".repeat(8_000);
        let body = format!(r#"{{"x":{open}{close}}}"#);
        assert_eq!(
            answer(body.as_bytes()).unwrap_err().code(),
            "unknown_parameter"
        );
    }

    #[test]
    fn the_media_type_is_json_in_utf_8_sent_once() {
        let code = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::CONTENT_TYPE, value.parse().unwrap());
            }
            check_media_type(&headers).map_or_else(|error| error.code(), |()| "accepted")
        };
        for good in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\"",
            "application/json; profile=x",
        ] {
            assert_eq!(code(&[good]), "accepted", "{good}");
        }
        for bad in [
            &[][..],
            &[""],
            &["text/plain"],
            &["application/jsonp"],
            &["application/json, text/plain"],
            &["application/json; charset=latin1"],
            &["application/json", "application/json"],
        ] {
            assert_eq!(code(bad), "invalid_content_type", "{bad:?}");
        }
    }

    #[test]
    fn of_several_faults_the_first_in_the_documented_order_is_named() {
        for (body, expected) in [
            (r#"{"scale":3,"extra":1,"scale":3}"#, "invalid_json"),
            (r#"{"scale":3,"extra":1,"callback":1}"#, "unknown_parameter"),
            (r#"{"callback":1,"extra":1}"#, "callback_not_supported"),
            (r#"{"scale":3}"#, "missing_image_url"),
            (
                r#"{"image_url":1,"output_format":1,"face_enhance":1,"scale":3}"#,
                "invalid_scale",
            ),
            (
                r#"{"image_url":1,"output_format":1,"face_enhance":1}"#,
                "invalid_face_enhance",
            ),
            (
                r#"{"image_url":1,"output_format":1}"#,
                "invalid_output_format",
            ),
            (r#"{"image_url":1}"#, "invalid_image_url"),
        ] {
            assert_eq!(
                answer(body.as_bytes()).unwrap_err().code(),
                expected,
                "{body}"
            );
        }
    }
}
