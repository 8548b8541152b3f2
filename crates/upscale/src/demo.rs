//! `upscale demo`: the whole service at work on this machine alone. A real `serve`, an HTTPS image host, the
//! operator's commands, and a customer who orders, polls, downloads and checks. Anything off ends it with an error.

mod image_host;
mod page;
mod pictures;

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs, io,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Instant,
};

use anyhow::{Context, bail, ensure};
use futures_util::future::{try_join, try_join_all};
use serde_json::{Value, json};
use tokio::{
    signal::{
        ctrl_c,
        unix::{SignalKind, signal},
    },
    sync::oneshot,
};
use upscale_client::{Client, ErrorKind, IdempotencyKey, Order, Task};
use upscale_core::{Credits, Scale, limits};
use upscale_image::{
    decode,
    raster::{Kernel, Pair, Rgb8, before_after, resize},
};

use self::{
    image_host::{HOST_NAME, ImageHost},
    page::PageFacts,
    pictures::{Picture, given, samples},
};
use crate::{args::DemoArgs, data::block_on, output, running::Running, whole_file::write_whole};

/// What the demo's customer buys.
const PURCHASE: &str = "10";
/// Largest result.
const RESULT_PIXELS_MAX: u64 = 16 * limits::MEGAPIXEL;

/// Runs the demo to its end.
pub(crate) fn demo(args: &DemoArgs) -> anyhow::Result<()> {
    let started = Timeline(Instant::now());
    let pictures = if args.images.is_empty() {
        samples()?
    } else {
        given(&args.images)?
    };
    let folder = tempfile::tempdir()?;
    let service = open(folder.path(), &pictures)?;
    if args.hold {
        return hold(service, &pictures);
    }
    fs::create_dir_all(&args.out).with_context(|| args.out.display().to_string())?;
    started.says(&format!(
        "`upscale serve` is ready at {}, an image host serves {} pictures as https://{HOST_NAME}/",
        service.api,
        pictures.len()
    ))?;
    let (account, key) = sign_up(&service)?;
    started.says(&format!(
        "account {account} bought {PURCHASE} credits and has a key"
    ))?;
    let client = Client::new(&service.api, &key)?;
    let (results, failure) = block_on(order_all(&client, &pictures, &started))?;
    let compared = compare(&results)?;
    save(&results, &compared, &args.out)?;
    let books = settle_up(&service, &account, &results, &started)?;
    service.stop()?;
    started.says("the service stopped cleanly")?;
    let page = page::page(&PageFacts {
        summary: &books.summary,
        compared: &compared,
        failure: &failure,
        ledger: &books.ledger,
    })?;
    let path = args.out.join("demo.html");
    write_whole(&path, page.as_bytes())?;
    output::line(&format!(
        "\nLook at {}: both enlargements under a slider, the failure, the ledger. The results are beside it.",
        path.display()
    ))?;
    match args.open {
        true => show(&path),
        false => Ok(()),
    }
}

/// By the program that the desktop opens pages with.
fn show(page: &Path) -> anyhow::Result<()> {
    let opened = Command::new("xdg-open")
        .arg(page)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match opened {
        Ok(status) if status.success() => Ok(()),
        _ => output::line("xdg-open could not show it: open that file in a browser."),
    }
}

/// An image host with the pictures, and a service that finds and trusts it.
fn open(folder: &Path, pictures: &[Picture]) -> anyhow::Result<Running> {
    let files = pictures
        .iter()
        .map(|picture| (picture.path.clone(), picture.bytes.clone()));
    let host = ImageHost::start(folder, files.collect::<HashMap<_, _>>())?;
    let flags = [
        "--source-connect-to",
        &host.connect_to,
        "--log",
        "warn",
        "--source-ca",
    ]
    .map(OsStr::new);
    let flags = [&flags[..], &[host.root_file.as_os_str()]].concat();
    Running::start(&folder.join("data"), &flags)
}

/// Says where everything is in one line of JSON, then stays until its standard input ends or it is told to stop: a
/// place to try a client against.
fn hold(service: Running, pictures: &[Picture]) -> anyhow::Result<()> {
    let (account, key) = sign_up(&service)?;
    let urls = pictures
        .iter()
        .map(|picture| format!("https://{HOST_NAME}{}", picture.path));
    output::json(&json!({
        "api": service.api,
        "key": key,
        "account": account,
        "images": urls.collect::<Vec<_>>(),
    }))?;
    let (sender, ended) = oneshot::channel();
    // A thread of its own: the runtime would wait for a read that never returns.
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = sender.send(());
    });
    block_on(async {
        let mut stop = signal(SignalKind::terminate())?;
        tokio::select! {
            _ = stop.recv() => {}
            _ = ctrl_c() => {}
            _ = ended => {}
        }
        Ok(())
    })?;
    service.stop()
}

/// What happened when, on standard output.
struct Timeline(Instant);

impl Timeline {
    fn says(&self, what: &str) -> anyhow::Result<()> {
        output::line(&format!("{:7.2} s  {what}", self.0.elapsed().as_secs_f64()))
    }
}

/// The operator's part: an account, credits, a key.
fn sign_up(service: &Running) -> anyhow::Result<(String, String)> {
    let text = |answer: &Value, name: &str| -> anyhow::Result<String> {
        let text = answer[name]
            .as_str()
            .with_context(|| format!("no {name} in {answer}"))?;
        Ok(text.to_owned())
    };
    let account = text(&service.operate(&["account", "create", "Demo"])?, "account")?;
    service.operate(&[
        "account",
        "credit",
        &account,
        PURCHASE,
        "--reference",
        "demo-1",
    ])?;
    let key = text(&service.operate(&["key", "create", &account])?, "key")?;
    Ok((account, key))
}

/// A picture at one scale, done.
struct Done<'a> {
    picture: &'a Picture,
    scale: Scale,
    png: Vec<u8>,
    /// What its task said it cost.
    charged: Credits,
}

/// An order under way.
struct Ordered<'a> {
    picture: &'a Picture,
    scale: Scale,
    key: IdempotencyKey,
    order: Order,
    id: String,
}

/// Orders every picture at both scales and one that is not there, then waits for all; the results, and what became of the
/// one that is not there.
async fn order_all<'a>(
    client: &Client,
    pictures: &'a [Picture],
    timeline: &Timeline,
) -> anyhow::Result<(Vec<Done<'a>>, String)> {
    let mut orders = Vec::new();
    for picture in pictures {
        if let Some((width, height)) = picture.shrunk_from {
            timeline.says(&format!(
                "{} has {width} x {height} pixels, more than a task allows: shrunk first",
                picture.name
            ))?;
        }
        for scale in Scale::ALL {
            orders.push(order(client, picture, scale, timeline).await?);
        }
    }
    let first = orders.first().context("nothing could be ordered")?;
    let again = client.upscales().create(&first.order, &first.key).await?;
    ensure!(
        again.is_replay && again.task.id() == first.id,
        "a repeated create made another task: {again:?}"
    );
    timeline.says("the first POST again, same key: the same task, nothing reserved")?;
    // All at once: each is heard of when it ends.
    let results = orders
        .into_iter()
        .map(|ordered| finish(client, ordered, timeline));
    try_join(try_join_all(results), fail_one(client, timeline)).await
}

async fn order<'a>(
    client: &Client,
    picture: &'a Picture,
    scale: Scale,
    timeline: &Timeline,
) -> anyhow::Result<Ordered<'a>> {
    let url = format!("https://{HOST_NAME}{}", picture.path);
    let order = Order::new(url).scale(u32::try_from(scale.factor())?);
    let key = IdempotencyKey::mint()?;
    let task = client.upscales().create(&order, &key).await?.task;
    timeline.says(&format!(
        "POST {} at {scale}: 202, {}",
        picture.path,
        describe(&task)
    ))?;
    Ok(Ordered {
        picture,
        scale,
        key,
        order,
        id: task.id().to_owned(),
    })
}

async fn finish<'a>(
    client: &Client,
    ordered: Ordered<'a>,
    timeline: &Timeline,
) -> anyhow::Result<Done<'a>> {
    let (picture, scale) = (ordered.picture, ordered.scale);
    let task = client.upscales().wait(&ordered.id).await?;
    let charged = Credits::from_thousandths(task.thousandths_charged);
    timeline.says(&format!(
        "GET  {} at {scale}: {}",
        picture.path,
        describe(&Task::Succeeded(task.clone()))
    ))?;
    let png = client.upscales().download(&task).await?;
    timeline.says(&format!(
        "GET  the result: {} bytes, checksum correct",
        png.len()
    ))?;
    Ok(Done {
        picture,
        scale,
        png,
        charged,
    })
}

/// Orders a picture that does not exist: it must fail and cost nothing. Returns the customer's error.
async fn fail_one(client: &Client, timeline: &Timeline) -> anyhow::Result<String> {
    let order = Order::new(format!("https://{HOST_NAME}/missing.png"));
    let created = client
        .upscales()
        .create(&order, &IdempotencyKey::mint()?)
        .await?;
    timeline.says(&format!(
        "POST /missing.png at 2x: 202, {}",
        describe(&created.task)
    ))?;
    let failure = match client.upscales().wait(created.task.id()).await {
        Err(error) => match *error.kind {
            ErrorKind::TaskFailed { failure, .. } => failure.message,
            other => bail!("a picture that is not there: {other}"),
        },
        Ok(task) => bail!("a picture that is not there has a result: {task:?}"),
    };
    timeline.says(&format!("GET  /missing.png at 2x: failed: {failure}"))?;
    Ok(failure)
}

fn describe(task: &Task) -> String {
    let credits = Credits::from_thousandths;
    match task {
        Task::Processing(task) => {
            format!(
                "processing, {} reserved",
                credits(task.thousandths_reserved)
            )
        }
        Task::Succeeded(task) => {
            format!("succeeded, {} charged", credits(task.thousandths_charged))
        }
        Task::Failed(task) => format!(
            "failed, {}: {}",
            task.failure.refund_status, task.failure.message
        ),
    }
}

/// A picture at its largest scale, beside what bicubic interpolation makes of it.
pub(crate) struct Compared {
    pub(crate) name: String,
    pub(crate) scale: Scale,
    pub(crate) pair: Pair,
}

/// Of each picture the largest scale, which comes last.
fn compare(results: &[Done<'_>]) -> anyhow::Result<Vec<Compared>> {
    let mut compared: Vec<Compared> = Vec::new();
    for done in results {
        let ours = Rgb8::of_source(&decode(&done.png, RESULT_PIXELS_MAX)?);
        let before = Rgb8::of_source(&decode(&done.picture.bytes, RESULT_PIXELS_MAX)?);
        let factor = done.scale.factor();
        let (width, height) = (before.width() * factor, before.height() * factor);
        let (name, found) = (&done.picture.name, (ours.width(), ours.height()));
        ensure!(
            found == (width, height),
            "the result of {name} has {} x {} pixels",
            found.0,
            found.1
        );
        let bicubic = resize(&before, width, height, Kernel::Bicubic);
        compared.retain(|other| other.name != *name);
        compared.push(Compared {
            name: name.clone(),
            scale: done.scale,
            pair: Pair { bicubic, ours },
        });
    }
    Ok(compared)
}

/// Writes the results, the pictures that no one has yet, and the comparison.
fn save(results: &[Done<'_>], compared: &[Compared], out: &Path) -> anyhow::Result<()> {
    for done in results {
        let name = format!("{}-{}.png", done.picture.name, done.scale);
        write_whole(&out.join(name), &done.png)?;
        if done.picture.is_drawn {
            let name = format!("{}.png", done.picture.name);
            write_whole(&out.join(name), &done.picture.bytes)?;
        }
    }
    let pairs: Vec<Pair> = compared.iter().map(|one| one.pair.clone()).collect();
    let composed = before_after(&pairs).context("there is nothing to compare")?;
    write_whole(&out.join("before-after.png"), &composed.to_png()?)
}

/// How the books stand when all is done.
struct Books {
    summary: String,
    ledger: Value,
}

/// The books after all of it: charged exactly what each task said it cost, nothing reserved, the audit clean.
fn settle_up(
    service: &Running,
    account: &str,
    results: &[Done<'_>],
    timeline: &Timeline,
) -> anyhow::Result<Books> {
    timeline.says("the ledger, newest first:\n")?;
    output::line(service.show(&["account", "ledger", account])?.trim_end())?;
    let shown = service.operate(&["account", "show", account])?;
    let charged: Credits = results.iter().map(|done| done.charged).sum();
    let is_right = format!("{} {}", shown["charged"], shown["reserved"]) == format!("{charged} 0");
    ensure!(
        is_right,
        "{charged} credits should be charged and none reserved: {shown}"
    );
    let audit = service.operate(&["audit"])?;
    ensure!(audit["ok"] == true, "the audit found: {audit}");
    output::line("")?;
    let summary = format!(
        "{charged} credits charged, {} available, audit clean",
        shown["available"]
    );
    timeline.says(&summary)?;
    Ok(Books {
        summary,
        ledger: service.operate(&["account", "ledger", account])?["lines"].take(),
    })
}
