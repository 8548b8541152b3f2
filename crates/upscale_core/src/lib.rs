//! What the words mean: types that cannot be wrong, every number of the contract once, and the decisions
//! (admit, retry, fingerprint) as pure functions. No I/O, no async, no clock but the one handed in.

mod admit;
mod api_key;
mod clock;
mod clock_watch;
mod condition;
mod credits;
mod domains;
mod email;
mod fair;
mod idempotency;
mod ids;
mod invalid_request;
pub mod limits;
mod look;
mod parameters;
mod payment;
mod pixels;
mod recovery_code;
mod retry;
mod samples;
mod scale;
mod secret_token;
mod share;
mod source_url;
mod task;
mod trace;
mod typed;

pub use admit::{
    AccountFacts, AccountLimits, Admission, OwnLimits, QueueFacts, SECONDS_PER_JOB_DEFAULT,
    admission_limit_seconds, admit, next_pace, poll_after_seconds, predicted_seconds, priority_at,
};
pub use api_key::{ApiKey, KeyHash, Permission, hex};
pub use clock::{Clock, Timestamp};
pub use clock_watch::ClockWatch;
pub use condition::{Compression, Condition, Estimate, Subsampling, soft_share};
pub use credits::{Credits, NotCredits};
pub use domains::Domains;
pub use email::{Email, NotAnEmail};
pub use fair::fair_share;
pub use idempotency::{IdempotencyKey, fingerprint};
pub use ids::{
    AccountId, CheckoutId, Id, KeyId, NoRandomness, RequestId, TaskId, UserId, is_token,
    random_bytes, random_token,
};
pub use invalid_request::InvalidRequest;
pub use look::{Look, NotALook};
pub use parameters::Parameters;
pub use payment::{Currency, NotCurrency, Package, Returns, credits_to_take_back, returned_amount};
pub use pixels::{Pixels, Rows, WrongSampleCount};
pub use recovery_code::RecoveryCode;
pub use retry::{AttemptFailure, Failures, NextStep, after_failure, after_interruption_millis};
pub use samples::{SAMPLES, Sample};
pub use scale::Scale;
pub use secret_token::{SecretToken, TokenHash};
pub use share::{slots_of_image, threads_of_slots};
pub use source_url::{SourceUrl, parse_target};
pub use task::{
    FAILURE_CODE, FailureMessage, NewTask, Preview, RefundStatus, ResultFile, Task, TaskState,
};
pub use trace::{Fact, Span, SpanId, SpanKind, TraceId, TraceParent, listen_to_spans, record_span};
pub use typed::{
    check_one_line, parse_name, parse_own_limit, parse_reason, parse_reference,
    parse_signed_credits,
};
