//! What is to be done: addresses from arguments, a list, CSV or standard input, each with the name of its result.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use upscale_client::Order;
use url::Url;

use crate::{args::SubmitArgs, parameters::ParameterColumns};

/// Largest list or CSV: 2,500 orders a day of 2 KiB each are 5 MB.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// One image and where its result goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) order: Order,
    /// Below the output directory.
    pub(crate) file: PathBuf,
}

/// One row of the CSV.
#[derive(Debug, Default, Deserialize)]
struct Row {
    image_url: String,
    #[serde(default)]
    file: Option<PathBuf>,
    /// Its other columns.
    #[serde(skip)]
    parameters: ParameterColumns,
}

/// Everything the arguments ask for, once each, in their order.
///
/// # Errors
/// When nothing is asked for, the input cannot be read, or two results would have one name.
pub(crate) fn wanted(args: &SubmitArgs) -> anyhow::Result<Vec<Wanted>> {
    let mut rows: Vec<Row> = args.urls.iter().map(|url| row(url)).collect();
    if let Some(list) = &args.list {
        rows.extend(listed(&read(list)?));
    }
    if let Some(path) = &args.csv {
        let rows_of_csv = tabled(&read(path)?);
        rows.extend(rows_of_csv.with_context(|| path.display().to_string())?);
    }
    ensure!(
        !rows.is_empty(),
        "nothing to do: pass URLs, --list FILE or --csv FILE"
    );
    let mut all = Vec::new();
    for (index, row) in rows.into_iter().enumerate() {
        all.push(place(row, index + 1, args)?);
    }
    once_each(all)
}

fn row(url: &str) -> Row {
    Row {
        image_url: url.to_owned(),
        ..Row::default()
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut read = |input: &mut dyn Read| input.take(INPUT_BYTES_MAX + 1).read_to_string(&mut text);
    let read = if path == Path::new("-") {
        read(&mut io::stdin().lock())
    } else {
        File::open(path).and_then(|mut file| read(&mut file))
    };
    let length = read.with_context(|| path.display().to_string())?;
    ensure!(
        length as u64 <= INPUT_BYTES_MAX,
        "{} has more than {INPUT_BYTES_MAX} bytes",
        path.display()
    );
    Ok(text)
}

fn listed(text: &str) -> Vec<Row> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(row)
        .collect()
}

fn tabled(text: &str) -> anyhow::Result<Vec<Row>> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let columns = reader.headers()?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        rows.push(Row {
            parameters: record.deserialize(Some(&columns))?,
            ..record.deserialize(Some(&columns))?
        });
    }
    Ok(rows)
}

fn place(row: Row, index: usize, args: &SubmitArgs) -> anyhow::Result<Wanted> {
    let flags = args.parameters.at(args.scale);
    let order = row.parameters.order(row.image_url, flags);
    let named = row.file.filter(|file| !file.as_os_str().is_empty());
    let file = match named {
        Some(file) => file,
        None => PathBuf::from(fill(&args.name, &order, index)?),
    };
    let stays_inside = file
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    ensure!(
        stays_inside && file.extension().is_some_and(|suffix| suffix == "png"),
        "the result's name {:?} must be below the output directory and end in .png",
        file
    );
    Ok(Wanted { order, file })
}

/// The pattern with its placeholders filled; what comes from the address keeps only characters that are safe in names.
fn fill(pattern: &str, order: &Order, index: usize) -> anyhow::Result<String> {
    let url = Url::parse(&order.image_url).ok();
    let last = url
        .as_ref()
        .and_then(|url| url.path_segments()?.next_back().map(str::to_owned))
        .unwrap_or_default();
    let stem = last
        .rsplit_once('.')
        .map_or(last.as_str(), |(stem, _)| stem);
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let filled = pattern
        .replace("{name}", &safe(stem))
        .replace("{host}", &safe(host))
        .replace("{scale}", &order.scale.to_string())
        .replace("{index}", &format!("{index:04}"));
    if let Some(open) = filled.find('{') {
        bail!(
            "the pattern has {:?}; known are {{name}}, {{host}}, {{scale}} and {{index}}",
            &filled[open..]
        );
    }
    Ok(filled)
}

fn safe(text: &str) -> String {
    let safe: String = text
        .chars()
        .take(100)
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' => c,
            _ => '_',
        })
        .collect();
    let safe = safe.trim_start_matches('.');
    if safe.is_empty() { "image" } else { safe }.to_owned()
}

/// The same order under the same name is one; two orders under one name would lose a result.
fn once_each(all: Vec<Wanted>) -> anyhow::Result<Vec<Wanted>> {
    let mut by_file: HashMap<PathBuf, Order> = HashMap::new();
    let mut clashes = HashSet::new();
    let mut kept = Vec::new();
    for wanted in all {
        match by_file.get(&wanted.file) {
            None => {
                by_file.insert(wanted.file.clone(), wanted.order.clone());
                kept.push(wanted);
            }
            Some(order) if *order == wanted.order => {}
            Some(_) => {
                clashes.insert(wanted.file.display().to_string());
            }
        }
    }
    ensure!(
        clashes.is_empty(),
        "{} results would share a name with another, such as {}: put {{index}} or {{host}} into --name",
        clashes.len(),
        clashes.iter().min().map_or("", String::as_str)
    );
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn args(given: &[&str]) -> SubmitArgs {
        let fixed = ["upscale", "submit", "--api", "https://a.example.com"];
        let all = fixed.iter().chain(&["--api-key", "k"]).chain(given);
        match Cli::try_parse_from(all).unwrap().command {
            Command::Submit(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    fn files(given: &[&str]) -> anyhow::Result<Vec<String>> {
        let all = wanted(&args(given))?;
        let names = all.iter().map(|wanted| wanted.file.display().to_string());
        Ok(names.collect())
    }

    #[test]
    fn names_come_from_the_address_and_the_pattern() {
        let urls = [
            "https://h.example.com/p/cat.v2.JPG?x=1",
            "https://h.example.com/.png",
        ];
        assert_eq!(files(&urls).unwrap(), ["cat.v2-2x.png", "image-2x.png"]);
        let all = [
            &urls[..],
            &[
                "--name",
                "{host}/{index}-{name}@{scale}.png",
                "--scale",
                "4",
            ],
        ];
        assert_eq!(
            files(&all.concat()).unwrap(),
            [
                "h.example.com/0001-cat.v2@4.png",
                "h.example.com/0002-image@4.png"
            ]
        );
    }

    #[test]
    fn an_address_cannot_lead_out_of_the_directory() {
        let names = files(&["https://h.example.com/a/..%2f..%2fetc.png"]).unwrap();
        assert!(!names[0].contains('/'), "{names:?}");
        for pattern in [
            "../{name}.png",
            "/tmp/{name}.png",
            "{name}.exe",
            "{nome}.png",
        ] {
            let refused = files(&["https://h.example.com/a.png", "--name", pattern]);
            assert!(refused.is_err(), "{pattern}");
        }
    }

    #[test]
    fn the_same_is_done_once_and_a_clash_of_names_is_told_before_anything_is_paid() {
        let twice = ["https://h.example.com/a.png", "https://h.example.com/a.png"];
        assert_eq!(files(&twice).unwrap().len(), 1);
        let clash = [
            "https://h.example.com/a.png",
            "https://other.example.com/a.jpg",
        ];
        let error = files(&clash).unwrap_err().to_string();
        assert!(
            error.contains("a-2x.png") && error.contains("{index}"),
            "{error}"
        );
    }

    #[test]
    fn a_list_and_a_table_are_read() {
        let text = "# pictures\n\n https://h.example.com/a.png \n";
        assert_eq!(listed(text).len(), 1);
        let table = "image_url,scale,face_enhance,file\nhttps://h.example.com/a.png,4,true,x/y.png\nhttps://h.example.com/b.png,,,\n";
        let rows = tabled(table).unwrap();
        let placed = place(tabled(table).unwrap().remove(0), 1, &args(&[])).unwrap();
        assert_eq!(placed.file, Path::new("x/y.png"));
        let reported = Order::new("https://h.example.com/a.png")
            .scale(4)
            .face_enhance(true);
        assert_eq!(placed.order, reported);
        assert_eq!(rows[1].parameters, ParameterColumns::default());
        assert!(tabled("url\nhttps://h.example.com/a.png\n").is_err());
        assert!(tabled("image_url,scale\nhttps://h.example.com/a.png,large\n").is_err());
    }

    #[test]
    fn nothing_to_do_is_said() {
        let error = files(&[]).unwrap_err().to_string();
        assert!(error.contains("--list"), "{error}");
    }
}
