//! The binary's table of contents: which command is done where.

mod account;
mod admin;
mod args;
mod audit;
mod backup;
mod bench;
mod bucket;
mod child;
mod config;
mod data;
mod demo;
mod device;
mod doctor;
mod file;
mod front;
mod golden;
mod gpu;
mod health;
mod key;
mod ledger;
mod mail;
mod manual;
mod memory;
mod metrics;
mod model;
mod on_behalf;
mod open_files;
mod output;
mod parameters;
mod ready;
mod running;
mod secret;
mod secret_keys;
mod serve;
mod serve_lock;
mod shown;
mod slots;
mod socket_file;
mod storage;
mod stripe;
mod submit;
mod task;
mod telemetry;
mod threads;
mod topology;
mod traces;
mod user;
mod whole_file;
mod work;

use std::process::ExitCode;

use args::{Command, Role};

fn main() -> ExitCode {
    let command = match config::read_command_line() {
        Ok(line) => line.command,
        Err(error) => return fail(&error, false),
    };
    let as_json = command.is_json();
    run(&command).unwrap_or_else(|error| fail(&error, as_json))
}

fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Serve {
            location,
            front,
            work,
            process,
            share_data,
        } => serve::run(&Role {
            location,
            front: Some(front),
            work: Some(work),
            process,
            share_data: Some(*share_data),
        })?,
        Command::Api {
            location,
            front,
            process,
        } => serve::run(&Role {
            location,
            front: Some(front),
            work: None,
            process,
            share_data: None,
        })?,
        Command::Worker {
            location,
            work,
            process,
        } => serve::run(&Role {
            location,
            front: None,
            work: Some(work),
            process,
            share_data: None,
        })?,
        Command::Quickstart(args) => account::quickstart(args)?,
        Command::Account(command) => account::account(command)?,
        Command::Key(command) => key::key(command)?,
        Command::Task(command) => task::task(command)?,
        Command::Ledger(command) => return ledger::ledger(command),
        Command::User(command) => user::user(command)?,
        Command::Health(args) => return health::health(args),
        Command::Doctor(args) => return doctor::doctor(args),
        Command::Audit(args) => return audit::audit(args),
        Command::Backup(args) => return backup::backup(args),
        Command::Storage(command) => return storage::storage(command),
        Command::File(args) => return file::file(args),
        Command::Model(command) => model::model(command)?,
        Command::Demo(args) => demo::demo(args)?,
        Command::Submit(args) => return submit::submit(args),
        Command::Status(args) => submit::status(args)?,
        Command::Wait(args) => return submit::wait(args),
        Command::Bench(args) => bench::bench(args)?,
        Command::Completions { shell } => manual::completions(*shell)?,
        Command::Man { folder } => manual::manual(folder)?,
        Command::Child(args) => return child::child(args),
        Command::Gpu(args) => gpu::gpu(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The whole chain of reasons in one line, on standard error.
fn fail(error: &anyhow::Error, as_json: bool) -> ExitCode {
    let message = format!("{error:#}");
    if as_json {
        eprintln!("{}", serde_json::json!({ "error": { "message": message } }));
    } else {
        eprintln!("upscale: {message}");
    }
    ExitCode::FAILURE
}
