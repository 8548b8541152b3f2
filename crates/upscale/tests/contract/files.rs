//! `upscale file` as people use it on folders of their own: many pictures, other formats and sizes, pipes, and results that
//! are there already.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Output, Stdio},
};

use tempfile::TempDir;
use upscale_image::{Format, decode};

use crate::harness::{pictures::Picture, serve::upscale};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    upscale()
        .arg("file")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

#[track_caller]
fn done(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {error}");
    error
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], why: &str) {
    let output = run(folder, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{arguments:?}");
    assert!(error.contains(why), "{arguments:?}: {error}");
}

fn picture() -> Vec<u8> {
    Picture::render(12, 8, 3).png()
}

/// Format, columns and rows of a file.
fn facts(path: &Path) -> (Format, u32, u32) {
    let header = decode(&fs::read(path).unwrap(), 1_000_000).unwrap().header;
    (header.format, header.width, header.height)
}

#[test]
fn a_result_has_a_name_of_its_own_and_the_format_of_its_ending() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.png"), picture()).unwrap();
    done(folder.path(), &["a.png", "--scale", "4"]);
    assert_eq!(facts(&at("a-4x.png")), (Format::Png, 48, 32));
    done(folder.path(), &["a.png", "--format", "jpeg"]);
    assert_eq!(facts(&at("a-2x.jpg")), (Format::Jpeg, 24, 16));
    done(folder.path(), &["a.png", "-o", "b.webp"]);
    assert_eq!(facts(&at("b.webp")), (Format::WebP, 24, 16));
    done(folder.path(), &["a.png", "c.jpg", "--resize", "9x7"]);
    assert_eq!(facts(&at("c.jpg")), (Format::Jpeg, 9, 7));
    for name in ["d.gif", "d"] {
        refused(folder.path(), &["a.png", name], ".png, .jpg or .webp");
    }
    refused(
        folder.path(),
        &["a.png", "e.webp", "--resize", "17000x2"],
        "16383",
    );
}

#[test]
fn a_folder_goes_into_a_folder_and_what_is_there_is_left_out() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("in/deep")).unwrap();
    for name in ["in/a.png", "in/b.png", "in/deep/c.png"] {
        fs::write(at(name), picture()).unwrap();
    }
    fs::write(at("in/notes.txt"), "no picture").unwrap();
    fs::write(at("in/broken.png"), "no picture either").unwrap();
    refused(folder.path(), &["in"], "--out DIR");
    refused(
        folder.path(),
        &["in", "-o", "in/out"],
        "inside the input folder",
    );
    let output = run(folder.path(), &["in", "-o", "out", "--recursive"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "one is broken: {error}");
    assert!(
        error.contains("broken.png") && error.contains("1 of 4"),
        "{error}"
    );
    for name in ["out/a-2x.png", "out/b-2x.png", "out/deep/c-2x.png"] {
        assert_eq!(facts(&at(name)), (Format::Png, 24, 16), "{name}");
    }
    fs::remove_file(at("in/broken.png")).unwrap();
    fs::remove_file(at("out/b-2x.png")).unwrap();
    let again = done(folder.path(), &["in", "-o", "out", "-r", "--skip-existing"]);
    assert!(again.contains("2 results already exist"), "{again}");
    assert!(at("out/b-2x.png").exists());
    refused(folder.path(), &["in", "-o", "out", "-r"], "already exists");
    done(
        folder.path(),
        &["in/a.png", "in/b.png", "-o", "out", "--overwrite"],
    );
}

#[test]
fn nothing_that_is_there_is_replaced_unasked() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["a.png", "b.png"] {
        fs::write(at(name), picture()).unwrap();
    }
    // As `upscale file *.png` in a folder of two.
    refused(folder.path(), &["a.png", "b.png"], "a second input");
    refused(folder.path(), &["a.png", "-o", "b.png"], "--overwrite");
    refused(
        folder.path(),
        &["a.png", "-o", "a.png", "--overwrite"],
        "its own source",
    );
    assert_eq!(fs::read(at("b.png")).unwrap(), picture());
    done(folder.path(), &["a.png", "b.png", "--overwrite"]);
    assert_eq!(facts(&at("b.png")), (Format::Png, 24, 16));
    refused(folder.path(), &["a.png", "-o", "a.png/x.png"], "a.png");
}

#[test]
fn pictures_come_by_a_pipe_and_go_by_one() {
    let mut child = upscale()
        .args(["file", "-", "--format", "webp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&picture()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let header = decode(&output.stdout, 10_000).unwrap().header;
    assert_eq!((header.format, header.width), (Format::WebP, 24));
}

#[test]
fn the_largest_input_is_what_the_flag_says() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.png"), picture()).unwrap();
    refused(
        folder.path(),
        &["a.png", "--pixels-max", "95"],
        "--pixels-max raises it",
    );
    done(folder.path(), &["a.png", "--pixels-max", "96"]);
}

#[test]
fn an_account_is_ready_to_order_after_one_command() {
    let folder = TempDir::new().unwrap();
    let operate = |arguments: &[&str]| -> serde_json::Value {
        let output = upscale()
            .args(arguments)
            .arg("--data")
            .arg(folder.path())
            .arg("--json")
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let quick = operate(&["quickstart"]);
    assert_eq!(quick["available"], 100);
    assert!(quick["key"].as_str().unwrap().starts_with("usk_live_"));
    let made = operate(&["account", "create", "Ann", "--credit", "7", "--key"]);
    assert_eq!(made["available"], 7);
    assert!(made["activated"] == true && made["key"].is_string());
    let plain = operate(&["account", "create", "Ben"]);
    assert!(plain["available"] == 0 && plain.get("key").is_none());
    assert_eq!(operate(&["audit"])["ok"], true);
}
