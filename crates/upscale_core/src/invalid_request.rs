//! What can be wrong with a create request: one variant a code of the contract, each with a message that
//! says what was expected and what came.

use crate::limits;

/// The request is wrong: always HTTP 400. `Display` is the message, [`InvalidRequest::code`] the code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    /// The body is not one JSON object with each field at most once.
    #[error("The body is not a valid JSON object: {0}.")]
    Json(String),
    /// The media type is not JSON.
    #[error("Content-Type must be application/json.")]
    ContentType,
    /// The body is packed.
    #[error("Content-Encoding is not supported. Send the body uncompressed.")]
    ContentEncoding,
    /// Anything about the request that no other code names.
    #[error("{0}")]
    Request(String),
    /// The body is longer than we read.
    #[error("The body is longer than {} bytes.", limits::BODY_BYTES_MAX)]
    TooLarge,
    /// A field the contract does not know.
    #[error("Unknown parameter: {0}.")]
    UnknownParameter(String),
    /// A request to be called back.
    #[error("{0} is not supported: results are read by polling the task.")]
    Callback(String),
    /// There is no `image_url`.
    #[error("image_url is required.")]
    MissingImageUrl,
    /// `image_url` breaks a rule.
    #[error("image_url is invalid: {0}.")]
    ImageUrl(&'static str),
    /// `scale` is neither 2 nor 4.
    #[error("scale must be 2 or 4.")]
    Scale,
    /// `face_enhance` is no boolean.
    #[error("face_enhance must be true or false.")]
    FaceEnhance,
    /// `output_format` is not png.
    #[error("output_format must be \"png\".")]
    OutputFormat,
    /// There is no `Idempotency-Key`.
    #[error("The Idempotency-Key header is required.")]
    MissingIdempotencyKey,
    /// `Idempotency-Key` breaks a rule.
    #[error(
        "Idempotency-Key must be sent once, as {} to {} visible ASCII characters.",
        limits::IDEMPOTENCY_KEY_CHARS_MIN,
        limits::IDEMPOTENCY_KEY_CHARS_MAX
    )]
    IdempotencyKey,
}

impl InvalidRequest {
    /// The stable code of the contract.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Json(_) => "invalid_json",
            Self::ContentType | Self::ContentEncoding => "invalid_content_type",
            Self::Request(_) => "invalid_request",
            Self::TooLarge => "request_too_large",
            Self::UnknownParameter(_) => "unknown_parameter",
            Self::Callback(_) => "callback_not_supported",
            Self::MissingImageUrl => "missing_image_url",
            Self::ImageUrl(_) => "invalid_image_url",
            Self::Scale => "invalid_scale",
            Self::FaceEnhance => "invalid_face_enhance",
            Self::OutputFormat => "invalid_output_format",
            Self::MissingIdempotencyKey => "missing_idempotency_key",
            Self::IdempotencyKey => "invalid_idempotency_key",
        }
    }
}
