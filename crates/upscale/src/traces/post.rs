//! How batches reach the collector: one request at a time, on the thread that the batches have, with a time for
//! everything; and the count of what arrived.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use metrics::counter;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::SpanExporter as Otlp;
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};
use reqwest::{Client, redirect::Policy};
use rustls::crypto::ring;
use tokio::runtime::Runtime;

/// One request, from the name's look-up to the last byte of the answer. The exporter's own time (10 s, or
/// OTEL_EXPORTER_OTLP_TIMEOUT) holds for a batch with its retries.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// A collector's answer is a few bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The HTTP client, with a runtime of its own: its caller is a thread that does nothing else and knows none. No
/// redirects: headers may hold the collector's key.
pub(super) struct Post {
    client: Client,
    runtime: Runtime,
}

impl Post {
    /// # Errors
    /// When the system has no room for it.
    pub(super) fn new() -> anyhow::Result<Self> {
        // Where results are in a bucket it is set already.
        let _ = ring::default_provider().install_default();
        let client = Client::builder()
            .timeout(REQUEST_TIMEOUT)
            .redirect(Policy::none())
            .http1_only()
            .build()
            .context("no client for traces")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("the runtime did not start")?;
        Ok(Self { client, runtime })
    }

    /// Errors name no address: it may hold the collector's key.
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        let answer = self.client.execute(request).await;
        let mut answer = answer.map_err(reqwest::Error::without_url)?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
            body.extend_from_slice(&chunk);
            if body.len() > ANSWER_BYTES_MAX {
                return Err(format!("an answer of more than {ANSWER_BYTES_MAX} bytes").into());
            }
        }
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        Ok(response)
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Post")
    }
}

impl HttpClient for Post {
    // As `async_trait` writes it, whose macro would be one more thing to trust for one function.
    fn send_bytes<'life0, 'async_trait>(
        &'life0 self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move { self.runtime.block_on(self.send(request)) })
    }
}

/// The exporter, its batches counted by how they ended.
#[derive(Debug)]
pub(super) struct Counted {
    exporter: Otlp,
    waiting: Arc<AtomicUsize>,
    is_failing: AtomicBool,
}

impl Counted {
    pub(super) fn new(exporter: Otlp, waiting: Arc<AtomicUsize>) -> Self {
        Self {
            exporter,
            waiting,
            is_failing: AtomicBool::new(false),
        }
    }

    /// One line when it begins and one when it is over, not one a batch. The error names a status, no address.
    fn note(&self, sent: &OTelSdkResult) {
        match (sent, self.is_failing.swap(sent.is_err(), Ordering::Relaxed)) {
            (Err(error), false) => tracing::warn!(%error, "traces cannot be sent and are dropped"),
            (Ok(()), true) => tracing::info!("traces are sent again"),
            _ => {}
        }
    }
}

impl SpanExporter for Counted {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let sent = self.exporter.export(batch).await;
        self.waiting.fetch_sub(spans, Ordering::Relaxed);
        let end = if sent.is_ok() { "sent" } else { "failed" };
        counter!("upscale_spans_total", "end" => end).increment(spans as u64);
        self.note(&sent);
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
