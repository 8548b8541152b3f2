//! Client of the Upscale API. One call does all of it: an idempotency key minted once for an image and kept over every
//! retry, back-off with jitter on what is temporary, a question that the service holds until the task is over
//! (`Prefer: wait`), and a download that is checked against the result's SHA-256.
//!
//! ```no_run
//! # async fn example() -> Result<(), upscale_client::Error> {
//! use upscale_client::{Client, Order};
//!
//! let client = Client::new("https://api.example.com", "usk_live_…")?;
//! let order = Order::new("https://images.example.com/cat.jpg").scale(4);
//! let task = client.upscales().run(&order).await?;
//! client.upscales().download_to(&task, "cat-4x.png").await?;
//! # Ok(()) }
//! ```
//!
//! A key belongs on a server, never in a browser. Where a run may die half way, mint the idempotency key yourself with
//! [`IdempotencyKey::mint`], write it down, and give it to [`Upscales::run_as`]: the same key is the same task and the
//! same charge, however often it is sent.

mod backoff;
mod client;
mod download;
mod error;
mod order;
mod task;
mod tls;
mod upscales;

pub use client::Client;
pub use error::{Error, ErrorKind, StatusError, StatusKind};
pub use order::{IdempotencyKey, Order};
pub use task::{Failed, Failure, Processing, Succeeded, Task};
pub use upscales::{Created, Upscales};
