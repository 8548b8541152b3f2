//! Result files by signed URL: `sign.rs` makes and checks the URL, `range.rs` reads `Range`, `deliver.rs`
//! answers. Files themselves belong to the store.

mod deliver;
mod delivery;
mod range;
mod sign;

pub(crate) use deliver::{deliver, etag_matches};
pub use delivery::ResultDelivery;
pub(crate) use sign::SigningKeys;
