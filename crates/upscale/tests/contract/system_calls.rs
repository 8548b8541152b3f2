//! The filter is held to what children really do: they are traced over real files of every odd kind, both scales, faces,
//! and over their own ends by abort and by running out of memory. What the filter allows and no trace shows says why.
//! `checks/system_calls.sh` makes the list anew.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;
use upscale_core::{Parameters, Scale};
use upscale_pipeline::{
    ChildOptions,
    fault::VARIABLE,
    sandbox::calls::{ALLOWED, TRACED},
};

use crate::harness::{child::sandboxed, pictures::Picture, serve::wait_for};

/// Set to write what was seen in place of comparing it.
const UPDATE: &str = "UPDATE_SYSTEM_CALLS";
/// Files of each kind that are traced: all of them take minutes more and show no other call.
const FILES_OF_A_KIND: usize = 2;

fn can_trace() -> bool {
    let tried = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .output();
    tried.is_ok_and(|output| output.status.success())
}

fn traced() -> BTreeSet<&'static str> {
    TRACED
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect()
}

#[test]
fn every_allowed_call_was_seen_or_says_why_it_is_needed() {
    let traced = traced();
    for call in ALLOWED {
        let was_seen = traced.contains(call.name);
        match call.untraced {
            None => assert!(was_seen, "{} was never seen and says nothing", call.name),
            Some(why) => assert!(!was_seen && !why.is_empty(), "{} was seen", call.name),
        }
    }
    let allowed: BTreeSet<&str> = ALLOWED.iter().map(|call| call.name).collect();
    assert!(traced.is_subset(&allowed), "{traced:?}");
    assert_eq!(allowed.len(), ALLOWED.len(), "a call is there twice");
}

/// The child under strace, which stands aside in a process group of its own (-DD): the child's
/// parent is this test, and strace outlives the child's group.
fn traced_child(to: &Path) -> ChildOptions {
    let mut options = sandboxed();
    let mut arguments = vec!["-DD".into(), "-f".into(), "-q".into(), "-o".into()];
    arguments.push(to.as_os_str().to_owned());
    arguments.push(options.program.into_os_string());
    arguments.extend(options.arguments);
    options.program = "/usr/bin/strace".into();
    options.arguments = arguments;
    options
}

/// Names of the calls of all threads after the last filter was set.
fn calls_inside(trace: &str) -> BTreeSet<String> {
    let closed = trace.rfind("seccomp(SECCOMP_SET_MODE_FILTER");
    let inside = &trace[closed.expect("the sandbox was never closed")..];
    let lines = inside.lines().skip(1);
    let names = lines.filter_map(|line| {
        let (_thread, call) = line.split_once(' ')?;
        let call = call.trim_start();
        // As in "<... futex resumed>", "--- SIGABRT …" and "+++ exited".
        let (name, _) = call.split_once('(')?;
        let is_name = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (is_name && !name.is_empty()).then(|| name.to_owned())
    });
    names.collect()
}

/// Traces one child; how it ended is other tests' matter.
async fn trace(source: &[u8], parameters: Parameters, fault: Option<&str>) -> BTreeSet<String> {
    let folder = TempDir::new().unwrap();
    let to = folder.path().join("trace");
    let mut options = traced_child(&to);
    if let Some(fault) = fault {
        options.environment.push((VARIABLE.into(), fault.into()));
    }
    let job = options.job(parameters);
    let ended = options.upscale(&job, source).await;
    let read = || fs::read_to_string(&to).unwrap_or_default();
    // strace writes its last lines when the child has ended already.
    wait_for(&format!("the trace's end: {ended:?}"), || {
        read().trim_end().ends_with("+++")
    });
    let trace = read();
    assert!(!trace.contains("SIGSYS"), "a call was forbidden: {trace}");
    calls_inside(&trace)
}

/// A few files of each folder, in the order of their names.
fn awkward_files(data: &Path) -> Vec<PathBuf> {
    let sorted = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let folders = sorted(&data.join("awkward")).into_iter();
    let folders = folders.filter(|path| path.is_dir());
    folders
        .flat_map(|folder| {
            let files = sorted(&folder).into_iter().filter(|path| path.is_file());
            files.take(FILES_OF_A_KIND).collect::<Vec<_>>()
        })
        .collect()
}

async fn trace_all() -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let drawn = Picture::render(96, 64, 1).encoded_for("/a.png");
    for scale in Scale::ALL {
        let parameters = Parameters {
            face_enhance: true,
            ..Parameters::at(scale)
        };
        seen.extend(trace(&drawn, parameters, None).await);
    }
    for fault in ["abort", "memory", "stack"] {
        seen.extend(trace(&drawn, Parameters::at(Scale::X2), Some(fault)).await);
    }
    match std::env::var_os("UPSCALE_TEST_DATA") {
        None => eprintln!("left out: real files, for UPSCALE_TEST_DATA is not set"),
        Some(data) => {
            for path in awkward_files(Path::new(&data)) {
                let source = fs::read(&path).unwrap();
                let calls = trace(&source, Parameters::at(Scale::X2), None).await;
                seen.extend(calls);
            }
        }
    }
    seen
}

#[tokio::test]
async fn children_make_no_call_that_the_list_does_not_have() {
    if !can_trace() {
        assert!(
            std::env::var_os("CI").is_none(),
            "nothing can be traced here"
        );
        eprintln!("left out: tracing children, for there is no strace that works");
        return;
    }
    // What says why it is needed may be seen or not.
    let is_explained = |name: &str| {
        let mut calls = ALLOWED.iter().filter(|call| call.untraced.is_some());
        calls.any(|call| call.name == name)
    };
    let mut seen = trace_all().await;
    seen.retain(|name| !is_explained(name));
    if std::env::var_os(UPDATE).is_some() {
        let head = "# What strace saw children do after their sandbox had closed (x86-64, glibc); checks/system_calls.sh.";
        let lines: Vec<&str> = [head]
            .into_iter()
            .chain(seen.iter().map(String::as_str))
            .collect();
        let path = "../upscale_pipeline/src/sandbox/traced.txt";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        fs::write(path, lines.join("\n") + "\n").unwrap();
        return;
    }
    let known = traced();
    let unknown: Vec<&String> = seen
        .iter()
        .filter(|name| !known.contains(name.as_str()))
        .collect();
    assert!(unknown.is_empty(), "not in traced.txt: {unknown:?}");
}
