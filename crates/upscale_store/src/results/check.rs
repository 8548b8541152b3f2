//! Tries everything the service will ask of a place for results, one thing after the other, in words for anyone who
//! set it up.

use bytes::Bytes;
use futures_util::StreamExt;
use reqwest::{Client, Method, Response, header};
use upscale_core::random_token;

use super::{Link, Results, Storage, failed, result_name};
use crate::StoreError;

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckStep {
    /// What was tried, a few words.
    pub what: &'static str,
    /// What was wrong, with what usually helps; none when it worked.
    pub problem: Option<String>,
}

const FILE_NAME: &str = "storage-check.png";
const LINK_SECONDS: u64 = 60;
/// Enough to be more than one packet.
const SIZE_BYTES: usize = 100_000;

/// How each try ended: a sentence when badly.
type Tried = Result<(), String>;

impl Results {
    /// Writes a small file, reads, lists, links and removes it. Ends early when it cannot be written. Leaves nothing
    /// behind unless removing fails.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the operating system provided no random bytes to name the file with.
    pub async fn check(&self) -> Result<Vec<CheckStep>, StoreError> {
        let name = random_token().map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let bytes: Bytes = (0..SIZE_BYTES).map(|at| (at % 251) as u8).collect();
        let mut steps = Vec::new();
        let mut report = |what, tried: Tried| {
            steps.push(CheckStep {
                what,
                problem: tried.err(),
            });
            steps.last().is_some_and(|step| step.problem.is_none())
        };
        let put = self.put(&name, bytes.clone()).await;
        if !report("write a file", allowed(put, "s3:PutObject")) {
            return Ok(steps);
        }
        report("find it", self.check_size(&name).await);
        report("read it back", self.check_bytes(&name, None, &bytes).await);
        let part = Some(1_000..2_000);
        report(
            "read a part of it",
            self.check_bytes(&name, part, &bytes[1_000..2_000]).await,
        );
        report("list it", self.check_listed(&name).await);
        if matches!(self.storage, Storage::Bucket(_)) {
            report(
                "download it by a link",
                self.check_link(&name, &bytes).await,
            );
            report(
                "ask for its size by a link",
                self.check_head_link(&name).await,
            );
            report(
                "be refused without a signature",
                self.check_unsigned(&name).await,
            );
        }
        report(
            "remove it",
            allowed(self.delete(&name).await, "s3:DeleteObject"),
        );
        report("find it gone", self.check_gone(&name).await);
        Ok(steps)
    }

    async fn check_size(&self, name: &str) -> Tried {
        let size = allowed(
            self.size_bytes(name).await,
            "s3:GetObject and s3:ListBucket",
        )?;
        expect(size == Some(SIZE_BYTES as u64), || {
            format!("{SIZE_BYTES} bytes were written and {size:?} are there")
        })
    }

    async fn check_bytes(
        &self,
        name: &str,
        range: Option<std::ops::Range<u64>>,
        expected: &[u8],
    ) -> Tried {
        let opened = allowed(self.open(name, range).await, "s3:GetObject")?;
        let mut body = opened.ok_or("it is not there though it was written")?;
        let mut read = Vec::new();
        while let Some(chunk) = body.stream.next().await {
            read.extend_from_slice(&chunk.map_err(|error| error.to_string())?);
        }
        expect(read == expected, || {
            format!("{} other bytes came back than were written", read.len())
        })
    }

    /// Through the listing itself, not the part that this hour's search takes.
    async fn check_listed(&self, name: &str) -> Tried {
        let listed = match &self.storage {
            Storage::Directory(_) => self.files.list(None),
            Storage::Bucket(bucket) => bucket.list_from(&name[..8]),
        };
        let found: Vec<_> = listed.map(|one| one.map_err(failed)).collect().await;
        let found: Result<Vec<_>, _> = found.into_iter().collect();
        let found = allowed(found, "s3:ListBucket")?;
        let is_there = found
            .iter()
            .filter_map(|meta| meta.location.filename().and_then(result_name))
            .any(|found| found == name);
        expect(is_there, || {
            format!("{} other objects were listed, it was not", found.len())
        })
    }

    async fn check_link(&self, name: &str, bytes: &Bytes) -> Tried {
        let response = self.ask_by_link(name, false).await?;
        let header = |name| {
            response
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
        };
        let disposition = header(header::CONTENT_DISPOSITION).unwrap_or_default();
        if !disposition.starts_with("attachment") {
            return Err(format!(
                "the file is not offered as a download: Content-Disposition is {disposition:?}"
            ));
        }
        let kind = header(header::CONTENT_TYPE).unwrap_or_default().to_owned();
        expect(kind == "image/png", || {
            format!("its Content-Type is {kind:?}")
        })?;
        let body = response.bytes().await.map_err(|error| error.to_string())?;
        expect(body == bytes, || {
            format!("{} other bytes came by the link", body.len())
        })
    }

    async fn check_head_link(&self, name: &str) -> Tried {
        let response = self.ask_by_link(name, true).await?;
        let length = response.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|value| value.to_str().ok());
        expect(length == Some(&SIZE_BYTES.to_string()), || {
            format!("Content-Length is {length:?} instead of {SIZE_BYTES}")
        })
    }

    async fn ask_by_link(&self, name: &str, is_head: bool) -> Result<Response, String> {
        let url = self.check_url(name, is_head).await?;
        let method = if is_head { Method::HEAD } else { Method::GET };
        let response = ask(method, &url).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        Err(format!(
            "the link was answered with {status}: do the storage's clock, region and public address agree with ours?"
        ))
    }

    async fn check_unsigned(&self, name: &str) -> Tried {
        let url = self.check_url(name, false).await?;
        let bare = url.split('?').next().unwrap_or_default();
        let status = ask(Method::GET, bare).await?.status();
        expect(!status.is_success(), || {
            "the bucket is public: anyone who knows a name may read a file".to_owned()
        })
    }

    async fn check_url(&self, name: &str, is_head: bool) -> Result<String, String> {
        let link = Link {
            is_head,
            file_name: FILE_NAME,
            seconds: LINK_SECONDS,
        };
        let url = self
            .link(name, &link)
            .await
            .map_err(|error| error.to_string())?;
        url.ok_or_else(|| "a directory has no links".to_owned())
    }

    async fn check_gone(&self, name: &str) -> Tried {
        let size = allowed(self.size_bytes(name).await, "s3:ListBucket")?;
        expect(size.is_none(), || {
            "it is still there after it was removed (is the bucket versioned?)".to_owned()
        })
    }
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Tried {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// What usually is behind the words of a storage.
const CAUSES: [(&str, &str); 5] = [
    ("NoSuchBucket", "there is no such bucket"),
    ("SignatureDoesNotMatch", "the secret key is wrong"),
    ("InvalidAccessKeyId", "the access key is wrong"),
    (
        "RequestTimeTooSkewed",
        "this machine's clock differs from the storage's",
    ),
    ("error sending request", "nothing answers at the endpoint"),
];

/// The cause where it is a known one, or the permission that the step needs; then the storage's own words.
fn allowed<T>(tried: Result<T, StoreError>, permission: &str) -> Result<T, String> {
    tried.map_err(|error| {
        let words = error.to_string();
        let known = CAUSES.iter().find(|(code, _)| words.contains(code));
        match known {
            Some((_, cause)) => format!("{cause} ({words})"),
            None => format!("this needs the permission {permission} ({words})"),
        }
    })
}

/// As a customer would: no credentials, no redirects.
async fn ask(method: Method, url: &str) -> Result<Response, String> {
    let client = Client::builder()
        .timeout(std::time::Duration::from_secs(30))
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| error.to_string())?;
    let sent = client.request(method, url).send().await;
    // Without the address: it carries the signature.
    sent.map_err(|error| format!("the link could not be opened: {}", error.without_url()))
}
