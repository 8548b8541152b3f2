//! `upscale demo`: the whole service at work on this machine alone. A real `serve`, an HTTPS image host, the
//! operator's commands, and a customer who orders, polls, downloads and checks. Anything off ends it with an error.

mod image_host;
mod pictures;

use std::{collections::HashMap, ffi::OsStr, fs, io, path::Path, thread, time::Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tokio::{
    signal::{
        ctrl_c,
        unix::{SignalKind, signal},
    },
    sync::oneshot,
};
use upscale_client::{Client, IdempotencyKey, Order, Status, Task};
use upscale_core::{Credits, Parameters, Scale, limits};
use upscale_image::{
    decode,
    raster::{Kernel, Pair, Rgb8, before_after, resize},
};

use self::{
    image_host::{HOST_NAME, ImageHost},
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
    let results = block_on(order_all(&client, &pictures, &started))?;
    save(&results, &args.out)?;
    settle_up(&service, &account, &results, &started)?;
    service.stop()?;
    started.says("the service stopped in order")?;
    output::line(&format!(
        "\nResults and before-after.png (left bicubic, right ours) are in {}",
        args.out.display()
    ))
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
    task: Task,
}

/// Orders every picture at both scales, then waits for each.
async fn order_all<'a>(
    client: &Client,
    pictures: &'a [Picture],
    timeline: &Timeline,
) -> anyhow::Result<Vec<Done<'a>>> {
    let mut orders = Vec::new();
    for picture in pictures {
        for scale in Scale::ALL {
            if picture.pixels > limits::source_pixels_max(Parameters::at(scale)) {
                timeline.says(&format!(
                    "{} is too large for {scale}: left out",
                    picture.path
                ))?;
                continue;
            }
            orders.push(order(client, picture, scale, timeline).await?);
        }
    }
    let first = orders.first().context("nothing could be ordered")?;
    let again = client.create(&first.order, &first.key).await?;
    ensure!(
        again.is_replay && again.task.id == first.task.id,
        "a repeated create made another task: {again:?}"
    );
    timeline.says("the first POST again, same key: the same task, nothing reserved")?;
    let mut results = Vec::new();
    for ordered in orders {
        results.push(finish(client, ordered, timeline).await?);
    }
    Ok(results)
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
    let task = client.create(&order, &key).await?.task;
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
        task,
    })
}

async fn finish<'a>(
    client: &Client,
    ordered: Ordered<'a>,
    timeline: &Timeline,
) -> anyhow::Result<Done<'a>> {
    let (picture, scale) = (ordered.picture, ordered.scale);
    let task = client.finish(ordered.task, &ordered.key).await?;
    timeline.says(&format!(
        "GET  {} at {scale}: {}",
        picture.path,
        describe(&task)
    ))?;
    let png = client.download(&task).await?;
    timeline.says(&format!(
        "GET  the result: {} bytes, checksum right",
        png.len()
    ))?;
    Ok(Done {
        picture,
        scale,
        png,
        charged: Credits::from_thousandths(task.thousandths_charged),
    })
}

fn describe(task: &Task) -> String {
    let credits = Credits::from_thousandths;
    match &task.status {
        Status::Processing { .. } => {
            format!(
                "processing, {} reserved",
                credits(task.thousandths_reserved)
            )
        }
        Status::Succeeded(_) => format!("succeeded, {} charged", credits(task.thousandths_charged)),
        Status::Failed(failure) => {
            format!("failed, {}: {}", failure.refund_status, failure.message)
        }
    }
}

/// Writes the results, and the comparison of the largest scale of each picture.
fn save(results: &[Done<'_>], out: &Path) -> anyhow::Result<()> {
    let mut pairs: Vec<(&str, Pair)> = Vec::new();
    for done in results {
        let name = format!("{}-{}.png", done.picture.name, done.scale);
        write_whole(&out.join(name), &done.png)?;
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
        pairs.retain(|(name, _)| *name != done.picture.name);
        pairs.push((name, Pair { bicubic, ours }));
    }
    for picture in results
        .iter()
        .map(|done| done.picture)
        .filter(|picture| picture.is_drawn)
    {
        write_whole(&out.join(format!("{}.png", picture.name)), &picture.bytes)?;
    }
    let pairs: Vec<Pair> = pairs.into_iter().map(|(_, pair)| pair).collect();
    let composed = before_after(&pairs).context("there is nothing to compare")?;
    write_whole(&out.join("before-after.png"), &composed.to_png()?)
}

/// The books after all of it: charged exactly what each task said it cost, nothing reserved, the audit clean.
fn settle_up(
    service: &Running,
    account: &str,
    results: &[Done<'_>],
    timeline: &Timeline,
) -> anyhow::Result<()> {
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
    timeline.says(&format!(
        "{charged} credits charged, {} available, audit clean",
        shown["available"]
    ))
}
