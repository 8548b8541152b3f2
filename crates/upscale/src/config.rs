//! Where a flag's value comes from: the command line, its `UPSCALE_…` variable, the file of `--config`, its
//! default, in this order. One walk over all commands gives every long flag its variable and, where the file
//! names it, the file's value in place of the default; clap does the rest.

mod default_directory;
mod variables;

use std::{collections::BTreeSet, ffi::OsString, path::PathBuf};

use anyhow::{Context, bail};
use clap::{
    Arg, ArgAction, CommandFactory, FromArgMatches,
    builder::{ArgPredicate, BoolishValueParser},
};
use toml::Value;

pub(crate) use self::default_directory::default_directory;
use self::variables::{variable, warn_of_unknown};
use crate::{args::Cli, manual::grouped};

/// The flags that say where a service's data is.
const LOCATION: &str = "data";
const DATABASE: &str = "database";

/// Reads the process' own arguments and environment. Ends the process after `--help` and on wrong usage,
/// as command lines do (exit status 0 and 2).
///
/// # Errors
/// When the file of `--config` cannot be read or says what no flag means.
pub(crate) fn read_command_line() -> anyhow::Result<Cli> {
    let given = place_and_json_last(std::env::args_os().collect());
    let table = match find_config(&given) {
        Some(path) => read_table(&path)?,
        None => toml::Table::new(),
    };
    let (command, flags) = command(&table)?;
    warn_of_unknown(&flags);
    let matches = grouped(command).get_matches_from(given);
    Cli::from_arg_matches(&matches).map_err(|error| error.exit())
}

/// `--data DIR`, `--database URL` and `--json` may stand anywhere, before the command too, as scripts like to write them. clap has
/// no global flag that some commands require and others lack, so they are moved to where the command takes them.
fn place_and_json_last(given: Vec<OsString>) -> Vec<OsString> {
    let (mut front, mut flags) = (Vec::new(), Vec::new());
    let mut given = given.into_iter();
    let mut rest = Vec::new();
    while let Some(argument) = given.next() {
        let text = argument.to_string_lossy();
        if text == "--" {
            rest.push(argument);
            rest.extend(given.by_ref());
        } else if text == "--data" || text == "--database" {
            flags.push(argument);
            flags.extend(given.next());
        } else if text == "--json" || text.starts_with("--data=") || text.starts_with("--database=")
        {
            flags.push(argument);
        } else {
            front.push(argument);
        }
    }
    front.into_iter().chain(flags).chain(rest).collect()
}

/// The file must be known before clap parses, because it changes defaults.
fn find_config(given: &[OsString]) -> Option<PathBuf> {
    let mut given = given.iter();
    while let Some(argument) = given.next() {
        if argument == "--config" {
            return given.next().map(PathBuf::from);
        }
        if let Some(path) = argument
            .to_str()
            .and_then(|text| text.strip_prefix("--config="))
        {
            return Some(path.into());
        }
    }
    std::env::var_os("UPSCALE_CONFIG").map(PathBuf::from)
}

fn read_table(path: &PathBuf) -> anyhow::Result<toml::Table> {
    let read = || -> anyhow::Result<toml::Table> { Ok(std::fs::read_to_string(path)?.parse()?) };
    let table = read().with_context(|| format!("the configuration file {}", path.display()))?;
    Ok(table
        .into_iter()
        .map(|(name, value)| (name.replace('_', "-"), value))
        .collect())
}

/// The whole command line with its variables, for what describes it.
pub(crate) fn plain_command() -> anyhow::Result<clap::Command> {
    Ok(command(&toml::Table::new())?.0)
}

/// The whole command line, with variables and the file's values; and its long flags.
fn command(table: &toml::Table) -> anyhow::Result<(clap::Command, BTreeSet<String>)> {
    let mut known = BTreeSet::new();
    let command = dress(Cli::command(), table, &mut known)?;
    let unknown: Vec<&str> = table
        .keys()
        .map(String::as_str)
        .filter(|name| !known.contains(*name))
        .collect();
    if !unknown.is_empty() {
        bail!(
            "the configuration file contains unknown names: {}",
            unknown.join(", ")
        );
    }
    Ok((command, known))
}

fn dress(
    command: clap::Command,
    table: &toml::Table,
    known: &mut BTreeSet<String>,
) -> anyhow::Result<clap::Command> {
    let mut failed = None;
    let location = default_location(&command, table);
    let mut dressed = command.mut_args(|arg| {
        let Some(name) = arg.get_long().map(str::to_owned) else {
            return arg;
        };
        known.insert(name.clone());
        let arg = with_variable(arg, &name);
        match table.get(&name).map(texts) {
            None if name == LOCATION => match &location {
                Some(location) => location.apply(arg),
                None => arg,
            },
            None => arg,
            Some(Ok(values)) => arg.required(false).default_values(values),
            Some(Err(error)) => {
                failed = Some(error.context(format!("the configuration file, {name}")));
                arg
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let names: Vec<String> = dressed
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .collect();
    for name in names {
        let found = dressed.find_subcommand(&name).cloned();
        if let Some(sub) = found {
            let sub = dress(sub, table, known)?;
            dressed = dressed.mut_subcommand(name, |_| sub);
        }
    }
    Ok(dressed)
}

/// Where a command's data is when no one says so.
struct DefaultLocation {
    directory: PathBuf,
    /// Whether the command may work on a database on a server, and then needs no directory.
    has_database: bool,
}

impl DefaultLocation {
    fn apply(&self, arg: Arg) -> Arg {
        let directory = self.directory.clone().into_os_string();
        let arg = arg.required(false).default_value(directory);
        // The help says it in general: a manual page is read on another machine than it was written on.
        let arg = arg.hide_default_value(true);
        if !self.has_database {
            return arg;
        }
        arg.default_value_if(DATABASE, ArgPredicate::IsPresent, None)
    }
}

/// Of the commands on a service's data; `bench api` has a directory of another kind.
fn default_location(command: &clap::Command, table: &toml::Table) -> Option<DefaultLocation> {
    let has_database = command
        .get_arguments()
        .any(|arg| arg.get_long() == Some(DATABASE));
    if !(has_database || command.get_name() == "backup") || table.contains_key(DATABASE) {
        return None;
    }
    Some(DefaultLocation {
        directory: default_directory()?,
        has_database,
    })
}

fn with_variable(arg: Arg, name: &str) -> Arg {
    let Some(variable) = variable(name) else {
        return arg;
    };
    let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
    let arg = arg.env(variable).hide_env_values(true);
    if is_switch {
        return arg.value_parser(BoolishValueParser::new());
    }
    arg
}

/// A value of the file as the command line would have it.
fn texts(value: &Value) -> anyhow::Result<Vec<String>> {
    match value {
        Value::Array(values) => {
            let texts: Vec<Vec<String>> =
                values.iter().map(texts).collect::<anyhow::Result<_>>()?;
            Ok(texts.into_iter().flatten().collect())
        }
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Ok(vec![value.to_string()]),
        Value::Table(_) | Value::Datetime(_) => {
            bail!("expected a string, a number, true, false or a list of these")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Command;

    #[test]
    fn data_and_json_may_stand_before_the_command() {
        let moved = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            place_and_json_last(words).join(std::ffi::OsStr::new(" "))
        };
        assert_eq!(
            moved("upscale --data d --json account create n"),
            "upscale account create n --data d --json"
        );
        assert_eq!(
            moved("upscale account --data=d create -- --json"),
            "upscale account create --data=d -- --json"
        );
        assert_eq!(moved("upscale audit --data"), "upscale audit --data");
    }

    fn serve(table: &str, arguments: &[&str]) -> Command {
        let (command, _) = command(&table.parse().unwrap()).unwrap();
        let given = ["upscale", "serve"].iter().chain(arguments);
        let matches = command.try_get_matches_from(given).unwrap();
        Cli::from_arg_matches(&matches).unwrap().command
    }

    #[test]
    fn the_command_line_holds_together() {
        plain_command().unwrap().debug_assert();
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let table =
            "data = \"from-file\"\nworkers = 3\ndrain = 7\nsource-ca = [\"a.pem\", \"b.pem\"]";
        let given = serve(table, &["--workers", "5"]);
        let Command::Serve {
            location,
            work,
            process,
            ..
        } = given
        else {
            panic!("{given:?}")
        };
        assert_eq!(location.data, Some(PathBuf::from("from-file")));
        assert_eq!(
            (work.workers, process.drain, process.deadline),
            (Some(5), 7, 270)
        );
        assert_eq!(
            work.source_ca,
            [PathBuf::from("a.pem"), PathBuf::from("b.pem")]
        );
    }

    #[test]
    fn data_are_at_home_where_neither_a_directory_nor_a_database_is_named() {
        let data = |table: &str, arguments: &[&str]| match serve(table, arguments) {
            Command::Serve { location, .. } => location.data,
            other => panic!("{other:?}"),
        };
        let home = default_directory();
        assert_eq!(data("", &[]), home);
        assert_eq!(data("", &["--data", "d"]), Some(PathBuf::from("d")));
        let database = ["--database", "postgres://a@b/c"];
        assert_eq!(data("", &database), None);
        assert_eq!(data("database = \"postgres://a@b/c\"", &[]), None);
        let both = data("data = \"d\"", &database);
        assert_eq!(both, Some(PathBuf::from("d")));
        let line = ["upscale", "backup", "out"];
        let matches = plain_command().unwrap().try_get_matches_from(line);
        match Cli::from_arg_matches(&matches.unwrap()).unwrap().command {
            Command::Backup(args) => assert_eq!(Some(args.data), home),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn address_ranges_come_from_the_file_or_the_line_and_must_be_ranges() {
        let given = serve(
            "data = \"d\"\nsource-deny = [\"52.1.0.0/16\", \"2a00::/32\"]",
            &["--nat64-prefix", "64:ff9b::/96,2a00:64::/64"],
        );
        let Command::Serve { work, .. } = given else {
            panic!("{given:?}")
        };
        assert_eq!(work.source_deny.len(), 2);
        assert_eq!(work.nat64_prefix[1], "2a00:64::/64".parse().unwrap());
        let dressed = plain_command().unwrap();
        for wrong in ["52.1.0.0/33", "nowhere", "52.1.0.0"] {
            let line = ["upscale", "serve", "--data", "d", "--source-deny", wrong];
            assert!(
                dressed.clone().try_get_matches_from(line).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn names_and_files_that_would_mislead_are_refused() {
        let dressed = plain_command().unwrap();
        for line in [
            &["account", "create", "two\nlines", "--data", "d"][..],
            &["account", "create", "\u{1b}[2J", "--data", "d"],
            &[
                "account",
                "credit",
                "acc_1",
                "1",
                "--reference",
                "a\tb",
                "--data",
                "d",
            ],
            &["wait", "ups_1", "--out", "out.jpg"],
            &["wait", "ups_1", "--out", "out"],
        ] {
            let line = [&["upscale"][..], line].concat();
            let error = dressed.clone().try_get_matches_from(&line).unwrap_err();
            assert_eq!(
                error.kind(),
                clap::error::ErrorKind::ValueValidation,
                "{line:?}"
            );
        }
        let call = ["--api", "https://a.example.com", "--api-key", "k"];
        let fine = [&["upscale", "wait", "ups_1", "--out", "out.PNG"][..], &call].concat();
        assert!(dressed.try_get_matches_from(fine).is_ok());
    }

    #[test]
    fn a_name_that_no_flag_has_is_refused() {
        let error = command(&"lissten = 1".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("lissten"), "{error}");
    }

    #[test]
    fn every_long_flag_has_its_variable() {
        let dressed = plain_command().unwrap();
        let serve = dressed.find_subcommand("serve").unwrap();
        let arg = serve
            .get_arguments()
            .find(|arg| arg.get_long() == Some("results-listen"));
        assert_eq!(arg.unwrap().get_env().unwrap(), "UPSCALE_RESULTS_LISTEN");
    }
}
