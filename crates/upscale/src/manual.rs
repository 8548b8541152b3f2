//! What the command line says of itself: the commands in groups, completions for shells, manual pages.

use std::{fs, io::stdout, path::Path};

use anyhow::Context;
use clap_complete::{Shell, generate};

use crate::config;

/// Every command by who needs it, in the order of `--help`.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Upscale pictures",
        &["file", "submit", "status", "wait", "demo"],
    ),
    (
        "Run the service",
        &["serve", "api", "worker", "doctor", "health"],
    ),
    (
        "Operate it",
        &[
            "quickstart",
            "account",
            "key",
            "task",
            "ledger",
            "user",
            "audit",
            "backup",
            "storage",
        ],
    ),
    (
        "Models, measurements, this program",
        &["model", "bench", "completions", "man", "help"],
    ),
];

/// The command with its subcommands listed by group.
pub(crate) fn grouped(command: clap::Command) -> clap::Command {
    let about = |name: &str| -> String {
        let found = command
            .find_subcommand(name)
            .and_then(clap::Command::get_about);
        found.map_or_else(|| "Print help of a command".to_owned(), ToString::to_string)
    };
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (title, names) in GROUPS {
        text += &format!("\n{title}:\n");
        for name in names {
            text += &format!("  {name:<12} {}\n", about(name));
        }
    }
    text += "\nOptions:\n{options}{after-help}";
    command.help_template(text)
}

/// `upscale completions SHELL`: the script on standard output.
pub(crate) fn completions(shell: Shell) -> anyhow::Result<()> {
    let mut command = config::plain_command()?;
    generate(shell, &mut command, "upscale", &mut stdout());
    Ok(())
}

/// `upscale man DIR`: a page for each command.
pub(crate) fn manual(folder: &Path) -> anyhow::Result<()> {
    let shown = || folder.display().to_string();
    fs::create_dir_all(folder).with_context(shown)?;
    clap_mangen::generate_to(config::plain_command()?, folder).with_context(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_one_group() {
        let command = config::plain_command().unwrap();
        let mut shown: Vec<&str> = command
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set())
            .map(clap::Command::get_name)
            .chain(["help"])
            .collect();
        let mut listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        shown.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, shown);
        let help = grouped(command).render_help().to_string();
        assert!(
            help.contains("Operate it:") && help.contains("  serve        Run the service"),
            "{help}"
        );
    }

    #[test]
    fn a_page_is_written_for_each_command() {
        let folder = tempfile::TempDir::new().unwrap();
        manual(folder.path()).unwrap();
        for page in ["upscale.1", "upscale-serve.1", "upscale-account-create.1"] {
            assert!(folder.path().join(page).exists(), "{page}");
        }
    }
}
