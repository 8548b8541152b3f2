//! Result files: bytes under an unguessable name, durable before anyone hears of them. In a directory of this
//! machine, or in a bucket (`bucket.rs`) that many machines write to and customers may download from directly.

mod bucket;
mod check;
mod probe;

use std::{
    fs,
    ops::Range,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::UNIX_EPOCH,
};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, future, stream, stream::BoxStream};
use object_store::{
    GetOptions, GetRange, ObjectStore, ObjectStoreExt, local::LocalFileSystem, path::Path as Key,
};
use tokio::sync::Mutex;
use upscale_core::{Timestamp, is_token};

use self::bucket::Bucket;
pub use self::{
    bucket::{BucketOptions, Link},
    check::CheckStep,
};
use crate::StoreError;

const SUFFIX: &str = ".png";
/// Of the thumbnail beside a result: it has the result's name, and goes with it.
const THUMBNAIL_SUFFIX: &str = ".thumb.png";
/// Files removed at a time.
const DELETES_AT_A_TIME: usize = 16;

/// Where result files live. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Results {
    files: Arc<dyn ObjectStore>,
    storage: Storage,
    /// Held while a directory is probed.
    probing: Arc<Mutex<()>>,
}

#[derive(Debug, Clone)]
enum Storage {
    Directory(Arc<PathBuf>),
    Bucket(Arc<Bucket>),
}

/// Part or all of a result file.
pub struct ResultBody {
    /// Length of the whole file.
    pub size_bytes: u64,
    /// The bytes of the asked range, in order.
    pub stream: BoxStream<'static, Result<Bytes, StoreError>>,
}

impl Results {
    /// Files under this directory, fsynced; makes it where absent, for its owner alone.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the directory cannot be made or opened.
    pub fn local(directory: &Path) -> Result<Self, StoreError> {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory);
        made.map_err(|error| cannot_read(directory, &error))?;
        // Synced writes: the file's bytes, its name and its directory, before put() returns.
        let files = LocalFileSystem::new_with_prefix(directory)
            .map_err(failed)?
            .with_fsync(true);
        Ok(Self {
            files: Arc::new(files),
            storage: Storage::Directory(Arc::new(directory.to_owned())),
            probing: Arc::default(),
        })
    }

    /// Files in a bucket of an S3-compatible storage. Says nothing to it yet: [`Results::check`] does.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the options do not name a bucket or hold what is no setting.
    pub fn bucket(options: &BucketOptions) -> Result<Self, StoreError> {
        let bucket = Bucket::open(options)?;
        Ok(Self {
            files: bucket.files(),
            storage: Storage::Bucket(Arc::new(bucket)),
            probing: Arc::default(),
        })
    }

    /// Writes `name`.png whole and durable (file and directory fsynced, or the bucket's word for it) or not at
    /// all. Names are tokens of core, a new one for every attempt.
    ///
    /// # Errors
    /// [`StoreError`] when the name is no token or the bytes did not get there.
    pub async fn put(&self, name: &str, bytes: Bytes) -> Result<(), StoreError> {
        let key = self.key(name)?;
        match &self.storage {
            Storage::Directory(_) => {
                let put = self.files.put(&key, bytes.into()).await;
                put.map(drop).map_err(failed)
            }
            Storage::Bucket(bucket) => bucket.put(&key, bytes).await,
        }
    }

    /// Writes the thumbnail of the result `name`, with the same promise. What has none is shown without.
    ///
    /// # Errors
    /// [`StoreError`] when the name is no token or the bytes did not get there.
    pub async fn put_thumbnail(&self, name: &str, bytes: Bytes) -> Result<(), StoreError> {
        let put = self
            .files
            .put(&self.thumbnail_key(name)?, bytes.into())
            .await;
        put.map(drop).map_err(failed)
    }

    /// As [`Results::link`], of the thumbnail.
    ///
    /// # Errors
    /// [`StoreError`] when the name is no token or there are no credentials to sign with.
    pub async fn thumbnail_link(
        &self,
        name: &str,
        link: &Link<'_>,
    ) -> Result<Option<String>, StoreError> {
        match &self.storage {
            Storage::Directory(_) => Ok(None),
            Storage::Bucket(bucket) => {
                let signed = bucket.sign(&self.thumbnail_key(name)?, link).await;
                signed.map(Some)
            }
        }
    }

    /// Opens a thumbnail; none when it is not there.
    ///
    /// # Errors
    /// [`StoreError`] when the name is no token or the file cannot be read.
    pub async fn open_thumbnail(&self, name: &str) -> Result<Option<ResultBody>, StoreError> {
        self.open_key(&self.thumbnail_key(name)?, GetOptions::default())
            .await
    }

    /// A link under which the bucket itself hands out the file; none for a directory, whose files are read by
    /// [`Results::open`]. Nothing is asked of the bucket: whether the file is there is the record's to say.
    ///
    /// # Errors
    /// [`StoreError`] when the name is no token or there are no credentials to sign with.
    pub async fn link(&self, name: &str, link: &Link<'_>) -> Result<Option<String>, StoreError> {
        match &self.storage {
            Storage::Directory(_) => Ok(None),
            Storage::Bucket(bucket) => bucket.sign(&self.key(name)?, link).await.map(Some),
        }
    }

    /// Opens a file; none when it is not there. `range` is within the file, not empty, end exclusive.
    ///
    /// # Errors
    /// [`StoreError`] when the name is no token or the file cannot be read.
    pub async fn open(
        &self,
        name: &str,
        range: Option<Range<u64>>,
    ) -> Result<Option<ResultBody>, StoreError> {
        let options = GetOptions {
            range: range.map(GetRange::Bounded),
            ..GetOptions::default()
        };
        self.open_key(&self.key(name)?, options).await
    }

    async fn open_key(
        &self,
        key: &Key,
        options: GetOptions,
    ) -> Result<Option<ResultBody>, StoreError> {
        let files = match &self.storage {
            Storage::Directory(_) => &*self.files,
            Storage::Bucket(bucket) => bucket.reader(),
        };
        let Some(found) = if_there(files.get_opts(key, options).await)? else {
            return Ok(None);
        };
        Ok(Some(ResultBody {
            size_bytes: found.meta.size,
            stream: found.into_stream().map_err(failed).boxed(),
        }))
    }

    /// Removes a file and its thumbnail; removing what is not there is no error.
    ///
    /// # Errors
    /// [`StoreError`] when the name is no token or the file cannot be removed.
    pub async fn delete(&self, name: &str) -> Result<(), StoreError> {
        if_there(self.files.delete(&self.key(name)?).await)?;
        if_there(self.files.delete(&self.thumbnail_key(name)?).await).map(drop)
    }

    /// Removes files, several at a time.
    pub(crate) async fn delete_all(&self, names: &[String]) -> Result<(), StoreError> {
        stream::iter(names)
            .map(Ok)
            .try_for_each_concurrent(DELETES_AT_A_TIME, |name| self.delete(name))
            .await
    }

    /// Length of a file; none when it is not there.
    pub(crate) async fn size_bytes(&self, name: &str) -> Result<Option<u64>, StoreError> {
        let found = if_there(self.files.head(&self.key(name)?).await)?;
        Ok(found.map(|meta| meta.size))
    }

    /// Length of a thumbnail; none when it is not there.
    pub(crate) async fn thumbnail_bytes(&self, name: &str) -> Result<Option<u64>, StoreError> {
        let found = if_there(self.files.head(&self.thumbnail_key(name)?).await)?;
        Ok(found.map(|meta| meta.size))
    }

    /// Names of the results and thumbnails last written before then, each perhaps twice, in a bucket those of one part (see
    /// [`Bucket::part`]). Files that are neither are left alone.
    pub(crate) fn list_older_than(
        &self,
        before: Timestamp,
    ) -> BoxStream<'static, Result<String, StoreError>> {
        let listed = match &self.storage {
            Storage::Directory(_) => self.files.list(None),
            Storage::Bucket(bucket) => bucket.part(before),
        };
        let old = listed.map_err(failed).try_filter_map(move |meta| {
            let is_old = meta.last_modified.timestamp_micros() < before.micros();
            let name = meta.location.filename().and_then(result_name);
            future::ready(Ok(name.filter(|_| is_old)))
        });
        old.boxed()
    }

    /// Removes what writes cut off by a crash left before then: `NAME.png#N`, which a listing hides. A bucket
    /// keeps nothing of a write that was cut off.
    pub(crate) async fn remove_unfinished(&self, before: Timestamp) -> Result<u32, StoreError> {
        let Storage::Directory(directory) = &self.storage else {
            return Ok(0);
        };
        let path = Arc::clone(directory);
        let removed = tokio::task::spawn_blocking(move || remove_unfinished(&path, before))
            .await
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        removed.map_err(|error| cannot_read(directory, &error))
    }

    /// A name is checked before it becomes a path: nothing but tokens, so nothing outside the place.
    fn key(&self, name: &str) -> Result<Key, StoreError> {
        self.key_of(name, SUFFIX)
    }

    fn thumbnail_key(&self, name: &str) -> Result<Key, StoreError> {
        self.key_of(name, THUMBNAIL_SUFFIX)
    }

    fn key_of(&self, name: &str, suffix: &str) -> Result<Key, StoreError> {
        if !is_token(name) {
            return Err(StoreError::Refused(format!(
                "{name:?}: it cannot name a result"
            )));
        }
        let file = format!("{name}{suffix}");
        Ok(match &self.storage {
            Storage::Directory(_) => Key::from(file),
            Storage::Bucket(bucket) => bucket.key(&file),
        })
    }
}

fn remove_unfinished(directory: &Path, before: Timestamp) -> std::io::Result<u32> {
    let mut removed = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let file_name = entry.file_name();
        let is_unfinished = file_name
            .to_str()
            .and_then(|name| name.split_once('#'))
            .is_some_and(|(name, _)| result_name(name).is_some());
        if !is_unfinished {
            continue;
        }
        let written = entry
            .metadata()?
            .modified()?
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        if i64::try_from(written.as_micros()).is_ok_and(|micros| micros < before.micros()) {
            fs::remove_file(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// The token of `TOKEN.png` and of `TOKEN.thumb.png`; none for any other file.
fn result_name(file: &str) -> Option<String> {
    file.strip_suffix(THUMBNAIL_SUFFIX)
        .or_else(|| file.strip_suffix(SUFFIX))
        .filter(|name| is_token(name))
        .map(str::to_owned)
}

fn if_there<T>(result: object_store::Result<T>) -> Result<Option<T>, StoreError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

fn failed(error: object_store::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

fn cannot_read(directory: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Unavailable(format!("{}: {error}", directory.display()))
}
