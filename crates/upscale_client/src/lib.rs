//! Client of the Upscale API. One call does the whole dance: an idempotency key minted once for an image and kept
//! over every retry, back-off with jitter on what is temporary, the first poll after three seconds and later ones up
//! to ten seconds apart, and a download that is checked against the result's SHA-256.
//!
//! ```no_run
//! # async fn example() -> Result<(), upscale_client::Error> {
//! use upscale_client::{Client, Order};
//!
//! let client = Client::new("https://api.example.com", "usk_live_…")?;
//! let order = Order::new("https://images.example.com/cat.jpg").scale(4);
//! let done = client.upscale(&order).await?;
//! let png = client.download(&done).await?;
//! # Ok(()) }
//! ```
//!
//! A key belongs on a server, never in a browser. Where a run may die half way, mint the key yourself with
//! [`IdempotencyKey::mint`], write it down, and give it to [`Client::create`]: the same key is the same task and the
//! same charge, however often it is sent.

mod backoff;
mod client;
mod download;
mod error;
mod order;
mod task;
mod tls;

pub use client::{Client, Created, Patience, Polled};
pub use error::{ApiError, Error};
pub use order::{IdempotencyKey, Order};
pub use task::{Failure, Outcome, Status, Task};
