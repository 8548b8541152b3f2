//! A bucket of an S3-compatible storage: where it is, how long it may take, and links that it honours itself.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, future, stream::BoxStream};
use object_store::{
    Attribute, Attributes, BackoffConfig, ClientOptions, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutOptions, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey},
    path::Path as Key,
    signer::{SignedUrlOptions, Signer},
};
use reqwest::Method;
use tokio::time::timeout;
use upscale_core::Timestamp;

use super::{failed, probe};
use crate::StoreError;

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest single request: a result has a hundred megabytes at most.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// A read of a result goes as fast as its customer takes it, which the front bounds. A storage that sends no byte for this
/// long is gone.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// A request that failed for now is sent again this often, within this time; then the attempt fails for now and
/// core decides.
const RETRIES: usize = 2;
const RETRY_TIMEOUT: Duration = Duration::from_secs(15);
/// A write that is not answered is given up and sent again after this, and after so much more as its bytes take at a
/// slow pace: anyone who waits holds a place at the processor, and a storage that is back is to be found soon.
const PUT_TIMEOUT: Duration = Duration::from_secs(8);
const PUT_BYTES_PER_SECOND: u32 = 2 << 20;
/// First characters of tokens: 0 to 7 (see `is_token`). Each hour one eighth of a bucket is searched for orphans,
/// because a listing costs money and a million results a day take a thousand pages.
const PARTS: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

/// Where a bucket is and how to enter it.
#[derive(Debug, Clone, Default)]
pub struct BucketOptions {
    /// Where results lie: `s3://bucket` or `s3://bucket/prefix`.
    pub url: String,
    /// Variables as the AWS tools know them, such as `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`; others
    /// are ignored.
    pub variables: Vec<(String, String)>,
    /// The storage as customers reach it, where that differs from the endpoint, such as `https://files.example.com`.
    pub public_endpoint: Option<String>,
}

/// What a link is for.
#[derive(Debug, Clone, Copy)]
pub struct Link<'a> {
    /// Whether it answers HEAD instead of GET: a link is good for one of them.
    pub is_head: bool,
    /// What the customer's program may call the file; ASCII without quotes.
    pub file_name: &'a str,
    /// Seconds it is good for, at most a week; less where the credentials end sooner.
    pub seconds: u64,
}

#[derive(Debug)]
pub(super) struct Bucket {
    files: Arc<AmazonS3>,
    /// For reading results, at their customers' pace.
    reader: AmazonS3,
    signer: AmazonS3,
    prefix: Key,
}

impl Bucket {
    pub(super) fn open(options: &BucketOptions) -> Result<Self, StoreError> {
        // The library asks the process for its cryptography; an error says that it was chosen before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (name, prefix) = parse_url(&options.url)?;
        let files = builder(options)?.with_bucket_name(name).build();
        let reader = builder(options)?
            .with_bucket_name(name)
            .with_client_options(
                client(options)
                    .with_timeout_disabled()
                    .with_read_timeout(READ_TIMEOUT),
            )
            .build();
        let signer = match &options.public_endpoint {
            Some(endpoint) => builder(options)?
                .with_bucket_name(name)
                .with_allow_http(true)
                .with_endpoint(endpoint)
                .build(),
            None => builder(options)?.with_bucket_name(name).build(),
        };
        Ok(Self {
            files: Arc::new(files.map_err(failed)?),
            reader: reader.map_err(failed)?,
            signer: signer.map_err(failed)?,
            prefix: Key::parse(prefix).map_err(|error| failed(error.into()))?,
        })
    }

    pub(super) fn files(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.files) as Arc<dyn ObjectStore>
    }

    pub(super) fn reader(&self) -> &dyn ObjectStore {
        &self.reader
    }

    /// Each try writes the same bytes under the same name, so one that was given up does no harm.
    pub(super) async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), StoreError> {
        let transfer = bytes.len() as f64 / f64::from(PUT_BYTES_PER_SECOND);
        let wait_max = PUT_TIMEOUT + Duration::from_secs_f64(transfer);
        for _ in 0..=RETRIES {
            let put = self
                .files
                .put_opts(key, bytes.clone().into(), put_options());
            if let Ok(put) = timeout(wait_max, put).await {
                return put.map(drop).map_err(failed);
            }
        }
        Err(StoreError::Unavailable(format!(
            "the storage did not answer {} times within {wait_max:?}",
            RETRIES + 1
        )))
    }

    /// One small object, written over each time.
    pub(super) async fn probe(&self) -> Result<(), StoreError> {
        let bytes = Bytes::from_static(probe::FILE_NAME.as_bytes());
        let key = self.key(probe::FILE_NAME);
        let put = self.files.put(&key, bytes.into()).await;
        put.map(drop).map_err(failed)
    }

    pub(super) fn key(&self, file: &str) -> Key {
        self.prefix.clone().join(file)
    }

    /// One eighth of the objects, another one every hour.
    pub(super) fn part(
        &self,
        now: Timestamp,
    ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        let hour = now.unix_seconds().div_euclid(3_600);
        let part = PARTS[hour.rem_euclid(PARTS.len() as i64) as usize];
        self.list_from(part)
    }

    /// Objects whose token starts with `start`: those that come after it in the listing, as long as they do.
    pub(super) fn list_from(
        &self,
        start: &str,
    ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        let offset = self.key(start);
        let prefix = (!self.prefix.as_ref().is_empty()).then(|| self.prefix.clone());
        let listed = self.files.list_with_offset(prefix.as_ref(), &offset);
        let in_part = move |meta: &ObjectMeta| {
            future::ready(Ok(meta.location.as_ref().starts_with(offset.as_ref())))
        };
        listed.try_take_while(in_part).boxed()
    }

    pub(super) async fn sign(&self, key: &Key, link: &Link<'_>) -> Result<String, StoreError> {
        let method = if link.is_head {
            Method::HEAD
        } else {
            Method::GET
        };
        let disposition = format!("attachment; filename=\"{}\"", link.file_name);
        let options = SignedUrlOptions::new().with_query([
            ("response-content-type", "image/png"),
            ("response-content-disposition", disposition.as_str()),
        ]);
        let expires_in = Duration::from_secs(link.seconds);
        let signed = self
            .signer
            .signed_url_opts(method, key, expires_in, &options)
            .await;
        Ok(signed.map_err(failed)?.into())
    }
}

/// What the bucket answers by itself, should it ignore the wishes of a link.
fn put_options() -> PutOptions {
    PutOptions::from(Attributes::from_iter([
        (Attribute::ContentType, "image/png"),
        (Attribute::ContentDisposition, "attachment"),
    ]))
}

fn builder(options: &BucketOptions) -> Result<AmazonS3Builder, StoreError> {
    let mut builder = AmazonS3Builder::new();
    for (name, value) in &options.variables {
        let name = name.to_ascii_lowercase();
        // The tools' own names for the endpoint of one kind of storage.
        let name = if name == "aws_endpoint_url_s3" {
            "aws_endpoint_url"
        } else {
            &name
        };
        if let Ok(key) = name.parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    let builder = builder.with_client_options(client(options));
    Ok(builder.with_retry(RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: RETRIES,
        retry_timeout: RETRY_TIMEOUT,
    }))
}

fn client(options: &BucketOptions) -> ClientOptions {
    let mut variables = options.variables.iter();
    let allows_http = variables
        .any(|(name, value)| name.eq_ignore_ascii_case("AWS_ALLOW_HTTP") && value == "true");
    ClientOptions::new()
        .with_allow_http(allows_http)
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_timeout(REQUEST_TIMEOUT)
}

/// Bucket and prefix, the latter without slashes at its ends.
fn parse_url(url: &str) -> Result<(&str, &str), StoreError> {
    let wrong =
        || StoreError::Unavailable(format!("{url:?} is not s3://bucket or s3://bucket/prefix"));
    let rest = url.strip_prefix("s3://").ok_or_else(wrong)?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(is_name) || url.contains(['?', '#'])
    {
        return Err(wrong());
    }
    Ok((bucket, prefix.trim_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_url_is_a_bucket_and_perhaps_a_prefix() {
        assert_eq!(parse_url("s3://results").unwrap(), ("results", ""));
        assert_eq!(parse_url("s3://my.results/").unwrap(), ("my.results", ""));
        assert_eq!(parse_url("s3://results/a/b/").unwrap(), ("results", "a/b"));
        for wrong in [
            "",
            "results",
            "https://results",
            "s3://",
            "s3:///a",
            "s3://a",
            "s3://a b",
            "s3://abc?x=1",
        ] {
            assert!(parse_url(wrong).is_err(), "{wrong:?}");
        }
    }
}
