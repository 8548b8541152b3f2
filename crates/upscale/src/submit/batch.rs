//! Many orders, a few at a time, with a journal.

use std::{
    fs,
    path::Path,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use futures_util::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use upscale_client::{Client, Error, ErrorKind, IdempotencyKey};

use super::{
    client::client,
    journal::{Journal, Progress},
    orders::{Wanted, wanted},
};
use crate::{args::SubmitArgs, data::block_on, output, whole_file::write_whole};

/// In the output directory.
const JOURNAL: &str = "upscale-journal.jsonl";

/// How one order ended.
enum End {
    /// Downloaded by this run.
    Done,
    /// An earlier run had downloaded it.
    Before,
    /// Why there is no result; nothing was charged, or the journal knows how to go on.
    Failed(String),
    /// Not begun, because an earlier answer said that nothing will be accepted now.
    Left,
}

/// Runs the batch to its end. Exit status 1 when a result is missing.
pub(crate) fn submit(args: &SubmitArgs) -> anyhow::Result<ExitCode> {
    let all = wanted(args)?;
    fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    let journal = Journal::open(&args.out.join(JOURNAL))?;
    let batch = Batch {
        client: client(&args.call)?,
        journal: Mutex::new(journal),
        out: &args.out,
        is_stopped: AtomicBool::new(false),
        bar: bar(all.len() as u64),
    };
    let ends = block_on(batch.run(&all, usize::from(args.concurrency)))?;
    report(&ends, args)
}

struct Batch<'a> {
    client: Client,
    journal: Mutex<Journal>,
    out: &'a Path,
    is_stopped: AtomicBool,
    bar: ProgressBar,
}

impl Batch<'_> {
    async fn run<'w>(
        &self,
        all: &'w [Wanted],
        concurrency: usize,
    ) -> anyhow::Result<Vec<(&'w Wanted, End)>> {
        let mut running = stream::iter(all)
            .map(|wanted| async move { (wanted, self.one(wanted).await) })
            .buffer_unordered(concurrency);
        let (mut ends, mut missing) = (Vec::new(), 0);
        while let Some((wanted, end)) = running.next().await {
            let end = end?;
            // The report says why, once.
            if let End::Failed(_) = &end {
                missing += 1;
                self.bar.set_message(format!("{missing} failed"));
            }
            self.bar.inc(1);
            ends.push((wanted, end));
        }
        self.bar.finish_and_clear();
        Ok(ends)
    }

    /// # Errors
    /// Only what makes going on senseless: the journal or the disk.
    async fn one(&self, wanted: &Wanted) -> anyhow::Result<End> {
        let found = self.with_journal(|journal| Ok(journal.find(wanted)))?;
        let path = self.out.join(&wanted.file);
        if matches!(found, Some((_, Progress::Done))) && path.exists() {
            return Ok(End::Before);
        }
        if self.is_stopped.load(Ordering::Relaxed) {
            return Ok(End::Left);
        }
        let key = match found {
            Some((key, _)) => key,
            None => {
                let key = IdempotencyKey::mint()?;
                self.with_journal(|journal| journal.ordered(wanted, &key))?;
                key
            }
        };
        match self.fetch(wanted, &key).await {
            Ok(png) => {
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
                }
                write_whole(&path, &png)?;
                self.with_journal(|journal| journal.done(&key))?;
                Ok(End::Done)
            }
            Err(Fault::Here(error)) => Err(error),
            Err(Fault::There(error)) => self.failed(&key, &error),
        }
    }

    async fn fetch(&self, wanted: &Wanted, key: &IdempotencyKey) -> Result<Vec<u8>, Fault> {
        let upscales = self.client.upscales();
        let created = upscales.create(&wanted.order, key).await?;
        let id = created.task.id();
        self.with_journal(|journal| journal.accepted(key, id))
            .map_err(Fault::Here)?;
        let task = upscales.wait(id).await?;
        Ok(upscales.download(&task).await?)
    }

    /// What can never succeed under this key is closed in the journal; the rest may go on in a later run.
    fn failed(&self, key: &IdempotencyKey, error: &Error) -> anyhow::Result<End> {
        let is_over = match &*error.kind {
            ErrorKind::TaskFailed { .. } => true,
            // The result is gone: only a new order, paid anew, brings it back.
            ErrorKind::Status(refusal) => matches!(refusal.status, 400 | 404 | 409 | 410),
            _ => false,
        };
        if is_over {
            self.with_journal(|journal| journal.failed(key, &error.to_string()))?;
        }
        if let ErrorKind::Status(refusal) = &*error.kind
            && (matches!(refusal.status, 401..=403) || refusal.code == "daily_limit_exceeded")
        {
            self.is_stopped.store(true, Ordering::Relaxed);
        }
        Ok(End::Failed(error.to_string()))
    }

    fn with_journal<T>(
        &self,
        act: impl FnOnce(&mut Journal) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        act(&mut self.journal.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Which side broke.
enum Fault {
    Here(anyhow::Error),
    There(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::There(error)
    }
}

/// On standard error; nothing where that is no terminal.
fn bar(length: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len}, {eta} left {msg}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

fn report(ends: &[(&Wanted, End)], args: &SubmitArgs) -> anyhow::Result<ExitCode> {
    let count = |is: fn(&End) -> bool| ends.iter().filter(|(_, end)| is(end)).count();
    let done = count(|end| matches!(end, End::Done));
    let before = count(|end| matches!(end, End::Before));
    let left = count(|end| matches!(end, End::Left));
    let failed: Vec<(&str, &str)> = ends
        .iter()
        .filter_map(|(wanted, end)| match end {
            End::Failed(why) => Some((wanted.order.image_url.as_str(), why.as_str())),
            _ => None,
        })
        .collect();
    if args.call.json {
        let failed: Vec<_> = failed
            .iter()
            .map(|(url, why)| json!({ "image_url": url, "error": why }))
            .collect();
        output::json(
            &json!({ "done": done, "done_before": before, "left": left, "failed": failed }),
        )?;
    } else {
        output::line(&format!(
            "{done} done, {before} done before, {} failed, {left} not started",
            failed.len()
        ))?;
        match ends {
            [(wanted, End::Done | End::Before)] => {
                output::line(&args.out.join(&wanted.file).display().to_string())?;
            }
            _ if done + before > 0 => {
                output::line(&format!("The results are in {}.", args.out.display()))?;
            }
            _ => {}
        }
        for (url, why) in &failed {
            output::line(&format!("failed  {url}  {why}"))?;
        }
        if !failed.is_empty() || left > 0 {
            output::line(
                "Run the same command again to finish the rest; nothing is charged twice.",
            )?;
        }
    }
    let is_whole = failed.is_empty() && left == 0;
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
