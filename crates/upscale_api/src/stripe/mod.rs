//! Purchases through Stripe: `buy.rs` before the payment; after it `webhook.rs` takes the events, which `signature.rs`
//! believes and `event.rs` reads.

mod buy;
mod event;
mod signature;
mod webhook;

pub use self::buy::{BuyOutcome, NewSession, OpenSession, SessionError, Stripe};
pub(crate) use self::webhook::receive;
