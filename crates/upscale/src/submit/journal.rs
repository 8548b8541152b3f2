//! What a batch has done so far, so that a killed run goes on without paying twice: one JSON object a line, and the
//! line with an order's idempotency key is on the disk before the order is sent.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use upscale_client::{IdempotencyKey, Order};

use super::orders::Wanted;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
enum Line {
    /// About to be sent under this key.
    Ordered {
        key: String,
        #[serde(flatten)]
        order: Order,
        file: PathBuf,
    },
    /// Accepted.
    Accepted { key: String, id: String },
    /// The result is on the disk.
    Done { key: String },
    /// Ended without a result and without a charge; a later run orders it again under a new key.
    Failed { key: String, message: String },
}

/// How far an order is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Perhaps sent.
    Ordered,
    /// Accepted; the task's id.
    Accepted(String),
    /// Its result is on the disk.
    Done,
}

/// The file of one batch, held alone.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    known: HashMap<Known, (String, Progress)>,
}

/// What makes two orders the same across runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Known {
    order: Order,
    file: PathBuf,
}

impl Known {
    fn of(order: &Order, file: &Path) -> Self {
        Self {
            order: order.clone(),
            file: file.to_owned(),
        }
    }
}

impl Journal {
    /// Opens or makes it, and reads what earlier runs wrote. A last line that was cut off by a crash is dropped: what
    /// it told had not happened yet, or will be found again under the key of the line before.
    ///
    /// # Errors
    /// When another run holds it, it cannot be read or written, or a whole line is not ours.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let open = || -> anyhow::Result<Self> {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            let mut file = options.open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => bail!("another run is using it"),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            file.set_len(whole as u64)?;
            file.seek(SeekFrom::End(0))?;
            let known = replay(&text[..whole])?;
            let path = path.to_owned();
            Ok(Self { file, path, known })
        };
        open().with_context(|| format!("the journal {}", path.display()))
    }

    /// The key of an order and how far it came, when an earlier run sent it and it did not fail.
    pub(crate) fn find(&self, wanted: &Wanted) -> Option<(IdempotencyKey, Progress)> {
        let (key, progress) = self.known.get(&Known::of(&wanted.order, &wanted.file))?;
        Some((IdempotencyKey::parse(key).ok()?, progress.clone()))
    }

    /// Before sending.
    pub(crate) fn ordered(&mut self, wanted: &Wanted, key: &IdempotencyKey) -> anyhow::Result<()> {
        self.append(&Line::Ordered {
            key: key.to_string(),
            order: wanted.order.clone(),
            file: wanted.file.clone(),
        })
    }

    /// After the 202.
    pub(crate) fn accepted(&mut self, key: &IdempotencyKey, id: &str) -> anyhow::Result<()> {
        let (key, id) = (key.to_string(), id.to_owned());
        self.append(&Line::Accepted { key, id })
    }

    /// After the result is on the disk.
    pub(crate) fn done(&mut self, key: &IdempotencyKey) -> anyhow::Result<()> {
        let key = key.to_string();
        self.append(&Line::Done { key })
    }

    /// After a failure that is the task's end.
    pub(crate) fn failed(&mut self, key: &IdempotencyKey, message: &str) -> anyhow::Result<()> {
        let (key, message) = (key.to_string(), message.to_owned());
        self.append(&Line::Failed { key, message })
    }

    fn append(&mut self, line: &Line) -> anyhow::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        let written = self.file.write_all(text.as_bytes());
        written
            .and_then(|()| self.file.sync_data())
            .with_context(|| format!("the journal {}", self.path.display()))
    }
}

fn replay(text: &str) -> anyhow::Result<HashMap<Known, (String, Progress)>> {
    let mut orders: HashMap<String, Known> = HashMap::new();
    let mut known = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = serde_json::from_str(line).with_context(|| format!("line {}", number + 1))?;
        let (key, progress) = match line {
            Line::Ordered { key, order, file } => {
                orders.insert(key.clone(), Known { order, file });
                (key, Some(Progress::Ordered))
            }
            Line::Accepted { key, id } => (key, Some(Progress::Accepted(id))),
            Line::Done { key } => (key, Some(Progress::Done)),
            Line::Failed { key, .. } => (key, None),
        };
        let order = orders.get(&key);
        let order = order.with_context(|| format!("line {}: no order {key}", number + 1))?;
        match progress {
            Some(progress) => known.insert(order.clone(), (key, progress)),
            None => known.remove(order),
        };
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        Wanted {
            order: Order::new("https://h.example.com/a.png"),
            file: "a-2x.png".into(),
        }
    }

    #[test]
    fn a_later_run_finds_the_key_and_how_far_it_came() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let key = IdempotencyKey::mint().unwrap();
        let mut expected = None;
        for step in 0..4 {
            let mut journal = Journal::open(&path).unwrap();
            assert_eq!(journal.find(&wanted()), expected);
            let progress = match step {
                0 => {
                    journal.ordered(&wanted(), &key).unwrap();
                    Progress::Ordered
                }
                1 => {
                    journal.accepted(&key, "ups_1").unwrap();
                    Progress::Accepted("ups_1".to_owned())
                }
                _ => {
                    journal.done(&key).unwrap();
                    Progress::Done
                }
            };
            expected = Some((key.clone(), progress));
        }
        let other = Wanted {
            file: "b.png".into(),
            ..wanted()
        };
        assert_eq!(Journal::open(&path).unwrap().find(&other), None);
    }

    #[test]
    fn a_failed_order_is_forgotten_and_a_torn_line_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let key = IdempotencyKey::mint().unwrap();
        let mut journal = Journal::open(&path).unwrap();
        journal.ordered(&wanted(), &key).unwrap();
        drop(journal);
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{whole}{{\"event\":\"done\",\"ke")).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        assert_eq!(
            journal.find(&wanted()),
            Some((key.clone(), Progress::Ordered))
        );
        journal.failed(&key, "no image").unwrap();
        drop(journal);
        assert_eq!(Journal::open(&path).unwrap().find(&wanted()), None);
    }

    #[test]
    fn a_file_that_is_no_journal_is_left_alone_and_two_runs_do_not_share_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        std::fs::write(&path, "not ours\n").unwrap();
        let error = format!("{:#}", Journal::open(&path).unwrap_err());
        assert!(error.contains("line 1"), "{error}");
        let path = folder.path().join("k");
        let _held = Journal::open(&path).unwrap();
        let error = format!("{:#}", Journal::open(&path).unwrap_err());
        assert!(error.contains("another run"), "{error}");
    }
}
