//! Purchases through Stripe: `buy.rs` before the payment; after it `webhook.rs` takes the events, which `signature.rs`
//! believes and `event.rs` reads.

mod buy;
mod event;
mod signature;
mod webhook;

pub use self::buy::{BuyOutcome, OpenSession, SessionError, SessionOrder, Stripe};
pub(crate) use self::webhook::receive;
