//! The operator's side: the command line on the data directory, while `serve` runs or not.

use std::{path::PathBuf, process::Output};

use serde_json::Value;

use super::serve::upscale;

/// Runs commands on one data directory.
#[derive(Clone)]
pub struct Operator {
    data: PathBuf,
    variables: Vec<(String, String)>,
}

/// A key as `key create` shows it, the one time.
#[derive(Debug, Clone)]
pub struct NewKey {
    pub id: String,
    pub key: String,
}

/// Thousandths of a credit from a JSON number of credits.
pub fn thousandths(credits: &Value) -> i64 {
    let credits = credits
        .as_f64()
        .unwrap_or_else(|| panic!("credits are a number: {credits}"));
    (credits * 1_000.0).round() as i64
}

impl Operator {
    /// `variables` stand in the environment of every command.
    pub fn new(data: PathBuf, variables: Vec<(String, String)>) -> Self {
        Self { data, variables }
    }

    /// Whatever comes of it.
    pub fn output(&self, arguments: &[&str]) -> Output {
        let mut command = upscale();
        command
            .envs(self.variables.clone())
            .args(arguments)
            .arg("--data")
            .arg(&self.data)
            .arg("--json");
        command.output().unwrap()
    }

    /// What it prints; it must succeed.
    pub fn run(&self, arguments: &[&str]) -> Value {
        let output = self.output(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{arguments:?}: {}\n{error}",
            output.status
        );
        serde_json::from_slice(&output.stdout).unwrap_or_else(|fault| {
            let text = String::from_utf8_lossy(&output.stdout);
            panic!("{arguments:?} must print JSON ({fault}): {text}")
        })
    }

    pub fn create_account(&self, name: &str) -> String {
        let answer = self.run(&["account", "create", name]);
        answer["account"].as_str().unwrap().to_owned()
    }

    pub fn credit(&self, account: &str, credits: &str, reference: &str) -> Value {
        self.run(&[
            "account",
            "credit",
            account,
            credits,
            "--reference",
            reference,
        ])
    }

    pub fn show(&self, account: &str) -> Value {
        self.run(&["account", "show", account])
    }

    /// Available, reserved, charged, in thousandths.
    pub fn money(&self, account: &str) -> (i64, i64, i64) {
        let shown = self.show(account);
        let amount = |name: &str| thousandths(&shown[name]);
        (amount("available"), amount("reserved"), amount("charged"))
    }

    /// Kind and task of every line that names a task.
    pub fn transfers(&self, account: &str) -> Vec<(String, String)> {
        let ledger = self.run(&["account", "ledger", account, "--limit", "100000"]);
        let lines = ledger["lines"].as_array().unwrap().iter();
        let named = lines.filter_map(|line| Some((line["kind"].as_str()?, line["task"].as_str()?)));
        named
            .map(|(kind, task)| (kind.to_owned(), task.to_owned()))
            .collect()
    }

    /// With `None` the default permission.
    pub fn create_key(&self, account: &str, permission: Option<&str>) -> NewKey {
        let mut arguments = vec!["key", "create", account];
        arguments.extend(
            permission
                .into_iter()
                .flat_map(|word| ["--permission", word]),
        );
        new_key(&self.run(&arguments))
    }

    pub fn rotate_key(&self, id: &str) -> NewKey {
        new_key(&self.run(&["key", "rotate", id]))
    }

    /// One line a breach; none when all is well. The exit status must say the same.
    pub fn audit_breaches(&self) -> Vec<String> {
        let output = self.output(&["audit"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|fault| {
            panic!(
                "audit must print JSON ({fault}): {}",
                String::from_utf8_lossy(&output.stderr)
            )
        });
        let breaches = report["breaches"].as_array().unwrap();
        assert_eq!(report["ok"], breaches.is_empty(), "{report}");
        assert_eq!(
            output.status.code(),
            Some(i32::from(!breaches.is_empty())),
            "{report}"
        );
        breaches.iter().map(Value::to_string).collect()
    }
}

fn new_key(answer: &Value) -> NewKey {
    let text = |name: &str| {
        answer[name]
            .as_str()
            .unwrap_or_else(|| panic!("{name}: {answer}"))
            .to_owned()
    };
    NewKey {
        id: text("id"),
        key: text("key"),
    }
}
