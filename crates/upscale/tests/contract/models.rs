//! Models that people bring: in `file` and in `serve`, with their scales, their licences, their lies. The model is a
//! Compact network whose weights are all zero: what is left of it is the repeated source, which our own never gives.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use crate::harness::{
    World,
    client::order,
    model::{compact, compact_ncnn, softening, wide_compact},
    pictures::Picture,
    serve::upscale,
};

fn write_model(path: &Path, scale: usize) {
    fs::write(path, compact(scale)).unwrap();
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    upscale()
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

#[track_caller]
fn assert_refused(folder: &Path, arguments: &[&str], reason: &str) {
    let output = run(folder, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && error.contains(reason),
        "{arguments:?}: {error}"
    );
    assert!(!folder.join("out.png").exists());
}

fn write_card(folder: &Path, file: &str, commercial: &str) {
    let arguments = [
        "model",
        "card",
        file,
        "--licence",
        "CC-BY-4.0",
        "--source",
        "a test",
        "--commercial",
        commercial,
    ];
    assert!(run(folder, &arguments).status.success());
}

/// Every pixel of the source, repeated: what the network of zeros makes.
fn is_repeated(source: &Picture, result: &[u8], scale: u32) -> bool {
    let result = Picture::from_png(result).unwrap();
    assert_eq!(
        (result.width, result.height),
        (source.width * scale, source.height * scale)
    );
    let at = |picture: &Picture, x: u32, y: u32| {
        let start = ((y * picture.width + x) * 3) as usize;
        picture.rgb[start..start + 3].to_vec()
    };
    (0..result.height)
        .flat_map(|y| (0..result.width).map(move |x| (x, y)))
        .all(|(x, y)| at(&result, x, y) == at(source, x / scale, y / scale))
}

/// A folder with a picture and models of both scales.
fn folder() -> (tempfile::TempDir, Picture) {
    let folder = tempfile::TempDir::new().unwrap();
    let source = Picture::render(30, 20, 6);
    fs::write(folder.path().join("in.png"), source.png()).unwrap();
    write_model(&folder.path().join("two.safetensors"), 2);
    write_model(&folder.path().join("four.safetensors"), 4);
    (folder, source)
}

#[test]
fn a_file_is_upscaled_with_a_model_at_the_models_own_scale() {
    let (folder, source) = folder();
    for (arguments, scale) in [
        (vec!["--model", "two.safetensors"], 2),
        (vec!["--model", "four.safetensors"], 4),
        (vec!["--model", "four.safetensors", "--scale", "4"], 4),
    ] {
        let output = run(
            folder.path(),
            &[&["file", "in.png", "out.png"][..], &arguments].concat(),
        );
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {error}");
        assert!(error.contains("no card says"), "{error}");
        let result = fs::read(folder.path().join("out.png")).unwrap();
        assert!(is_repeated(&source, &result, scale));
        fs::remove_file(folder.path().join("out.png")).unwrap();
    }
}

#[test]
fn a_model_of_another_scale_is_refused_and_its_result_never_resized() {
    let (folder, _) = folder();
    for (model, scale) in [("two.safetensors", "4"), ("four.safetensors", "2")] {
        let arguments = [
            "file", "in.png", "out.png", "--model", model, "--scale", scale,
        ];
        assert_refused(folder.path(), &arguments, "not resized afterwards");
    }
}

#[test]
fn a_card_says_what_may_be_done_with_which_bytes() {
    let (folder, _) = folder();
    write_card(folder.path(), "two.safetensors", "no");
    let file = ["file", "in.png", "out.png", "--model", "two.safetensors"];
    assert_refused(folder.path(), &file, "does not allow commercial use");
    let allowed = [&file[..], &["--allow-non-commercial"]].concat();
    assert!(run(folder.path(), &allowed).status.success());
    fs::remove_file(folder.path().join("out.png")).unwrap();
    // The card of other bytes is no card of these.
    write_model(&folder.path().join("two.safetensors"), 4);
    assert_refused(folder.path(), &file, "describes another file");
}

#[test]
fn model_list_inspect_and_verify_say_what_a_file_is_in_words_and_in_json() {
    let (folder, _) = folder();
    write_card(folder.path(), "four.safetensors", "yes");
    fs::write(folder.path().join("broken.pth"), b"PK\x03\x04 and no more").unwrap();
    let json = |arguments: &[&str]| -> serde_json::Value {
        let output = run(folder.path(), &[arguments, &["--json"]].concat());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let listed = json(&["model", "list", "."]);
    let models = listed["models"].as_array().unwrap();
    let named = |name: &str| models.iter().find(|model| model["file"] == name).unwrap();
    assert_eq!(named("four.safetensors")["commercial"], "yes");
    assert_eq!(named("two.safetensors")["commercial"], "unclear");
    assert!(
        listed["refused"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("without an end"),
        "{listed}"
    );

    let inspected = json(&["model", "inspect", "four.safetensors"]);
    assert_eq!(inspected["model"]["scale"], 4);
    assert_eq!(
        inspected["model"]["architecture"],
        "Compact (SRVGGNetCompact)"
    );
    assert_eq!(inspected["card"]["licence"], "CC-BY-4.0");
    assert_eq!(inspected["card"]["sha256"], inspected["sha256"]);

    let verified = json(&["model", "verify", "four.safetensors"]);
    assert!(
        verified["verified"]["kernel_error"].as_f64().unwrap() <= 1e-5,
        "{verified}"
    );
    assert_eq!(verified["verified"]["consistency_db"], 99.0);
    assert!(verified.get("ranges").is_none(), "{verified}");
    // As `serve` asks: 260 bytes a layer, where this CPU multiplies integers faster.
    let found = json(&["model", "verify", "four.safetensors", "--ranges"]);
    let ranges = found["ranges"].as_array();
    assert!(
        ranges.is_none_or(|bytes| !bytes.is_empty() && bytes.len() % 260 == 0),
        "{found}"
    );
    for command in ["list", "inspect", "verify"] {
        let file = if command == "list" {
            "."
        } else {
            "four.safetensors"
        };
        let output = run(folder.path(), &["model", command, file]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("Compact"),
            "{text}"
        );
    }
}

/// ncnn's two files, either of which names both, with one card.
#[test]
fn a_pair_of_ncnns_files_runs_in_file_and_in_serve_and_has_a_card() {
    let (folder, source) = folder();
    let (text, numbers) = compact_ncnn(4);
    fs::write(folder.path().join("four.param"), &text).unwrap();
    fs::write(folder.path().join("four.bin"), &numbers).unwrap();
    write_card(folder.path(), "four.bin", "yes");
    assert!(folder.path().join("four.param.card.toml").exists());
    for name in ["four.param", "four.bin"] {
        let file = ["file", "in.png", "out.png", "--model", name];
        let output = run(folder.path(), &file);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        assert!(!error.contains("no card says"), "{error}");
        let result = fs::read(folder.path().join("out.png")).unwrap();
        assert!(is_repeated(&source, &result, 4));
        fs::remove_file(folder.path().join("out.png")).unwrap();
    }
    let listed = run(folder.path(), &["model", "list", "."]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("four.param") && !listed.contains("four.bin"));
    let inspected = run(folder.path(), &["model", "inspect", "four.bin"]);
    let inspected = String::from_utf8_lossy(&inspected.stdout).into_owned();
    for message in [
        "ncnn (.param and .bin)",
        "four.param, ",
        "four.param.card.toml",
    ] {
        assert!(inspected.contains(message), "{inspected}");
    }

    let model = folder.path().join("four.param");
    let mut world = World::start_with(&["--model-4x", model.to_str().unwrap()]);
    let customer = world.customer("2");
    let url = world.picture("/a.png", 30, 20);
    let ended = customer.upscale("ncnn-key", &order(&url, 4));
    let file = customer.fetch("GET", &ended.result_url(), &[]);
    assert!(is_repeated(&Picture::render(30, 20, 1), &file.body, 4));
    world.finish();
}

/// 64 channels in a picture that is large enough for integers: tile registers, where the CPU has them, are asked for by a call
/// that the child's sandbox forbids.
#[test]
fn a_wide_model_runs_in_the_sandbox() {
    let folder = tempfile::TempDir::new().unwrap();
    let model = folder.path().join("wide.safetensors");
    fs::write(&model, wide_compact(2)).unwrap();
    write_card(folder.path(), "wide.safetensors", "yes");
    let mut world = World::start_with(&["--model-2x", model.to_str().unwrap()]);
    let customer = world.customer("2");
    let source = Picture::render(100, 90, 1);
    let url = world.serve_bytes("/a.png", source.png(), (100, 90));
    let ended = customer.upscale("wide-key", &order(&url, 2));
    let file = customer.fetch("GET", &ended.result_url(), &[]);
    assert!(is_repeated(&source, &file.body, 2));
    assert!(!world.logs().contains("crash"), "{}", world.logs());
    world.finish();
}

/// Slow waves with the finest detail that there is on them: what a softening network takes off.
fn checkered() -> Picture {
    let mut picture = Picture::render(30, 20, 6);
    for (at, sample) in picture.rgb.iter_mut().enumerate() {
        let (x, y) = (at / 3 % 30, at / 90);
        let step = if (x + y) % 2 == 0 { 8 } else { -8 };
        *sample = sample.saturating_add_signed(step);
    }
    picture
}

/// How much of a picture is detail: neighbours' differences, summed.
fn detail(picture: &Picture) -> u64 {
    let pairs = picture.rgb.iter().zip(&picture.rgb[3..]);
    pairs.map(|(a, b)| u64::from(a.abs_diff(*b))).sum()
}

/// Only every so many pixels: what the repeated pixels of a result were made of.
fn before_repeating(result: &[u8], scale: u32) -> Picture {
    let result = Picture::from_png(result).unwrap();
    let (width, height) = (result.width / scale, result.height / scale);
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (x * scale, y * scale)));
    let rgb = places.flat_map(|(x, y)| {
        let start = ((y * result.width + x) * 3) as usize;
        result.rgb[start..start + 3].to_vec()
    });
    Picture {
        rgb: rgb.collect(),
        width,
        height,
    }
}

#[test]
fn a_model_of_1x_restores_before_another_enlarges() {
    let (folder, _) = folder();
    let source = checkered();
    fs::write(folder.path().join("in.png"), source.png()).unwrap();
    fs::write(folder.path().join("soft.safetensors"), softening()).unwrap();
    let file = [
        "file",
        "in.png",
        "out.png",
        "--model-1x",
        "soft.safetensors",
        "--model",
        "four.safetensors",
    ];
    let output = run(folder.path(), &file);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let result = fs::read(folder.path().join("out.png")).unwrap();
    let restored = before_repeating(&result, 4);
    let (before, after) = (detail(&source), detail(&restored));
    assert!(2 * after < before, "{after} of {before}");
    fs::remove_file(folder.path().join("out.png")).unwrap();
    for (flag, model, reason) in [
        (
            "--model-1x",
            "two.safetensors",
            "is a 2x model, but 1x was requested",
        ),
        ("--model", "soft.safetensors", "is a 1x model"),
    ] {
        let wrong = ["file", "in.png", "out.png", flag, model];
        assert_refused(folder.path(), &wrong, reason);
    }
    let verified = run(folder.path(), &["model", "verify", "soft.safetensors"]);
    let verified = String::from_utf8_lossy(&verified.stdout).into_owned();
    for message in [
        "1x",
        "the largest source of 1.5 megapixels",
        "within the 120 s",
    ] {
        assert!(verified.contains(message), "{verified}");
    }

    let [one, four] = ["soft.safetensors", "four.safetensors"].map(|name| folder.path().join(name));
    write_card(folder.path(), "soft.safetensors", "yes");
    write_card(folder.path(), "four.safetensors", "yes");
    let flags = [
        "--model-1x",
        one.to_str().unwrap(),
        "--model-4x",
        four.to_str().unwrap(),
    ];
    let mut world = World::start_with(&flags);
    let customer = world.customer("2");
    let url = world.serve_bytes("/a.png", source.png(), (30, 20));
    let ended = customer.upscale("restored-key", &order(&url, 4));
    let file = customer.fetch("GET", &ended.result_url(), &[]);
    let restored = before_repeating(&file.body, 4);
    assert!(2 * detail(&restored) < before);
    assert!(
        world
            .logs()
            .contains("a model restores pictures before they are upscaled")
    );
    // Our own network comes after it where no other was brought.
    let ended = customer.upscale("restored-key-2", &order(&url, 2));
    let file = customer.fetch("GET", &ended.result_url(), &[]);
    let result = Picture::from_png(&file.body).unwrap();
    assert_eq!((result.width, result.height), (60, 40));
    world.finish();
}

#[test]
fn half_a_pair_is_refused_and_so_are_numbers_of_another_model() {
    let (folder, _) = folder();
    let (text, _) = compact_ncnn(2);
    let (_, numbers) = compact_ncnn(4);
    fs::write(folder.path().join("two.param"), &text).unwrap();
    let file = ["file", "in.png", "out.png", "--model", "two.param"];
    assert_refused(folder.path(), &file, "needs its .bin file beside it");
    fs::write(folder.path().join("two.bin"), &numbers).unwrap();
    assert_refused(folder.path(), &file, "bytes of the .bin belong to no layer");
}

#[test]
fn serve_runs_the_model_of_its_start_for_its_scale_and_our_own_for_the_other() {
    let (folder, _) = folder();
    write_card(folder.path(), "four.safetensors", "yes");
    let model = folder.path().join("four.safetensors");
    let mut world = World::start_with(&["--model-4x", model.to_str().unwrap()]);
    // The bytes were read and sealed: what lies there now is nothing to the service.
    fs::remove_file(&model).unwrap();
    let customer = world.customer("2");
    let url = world.picture("/a.png", 30, 20);
    let source = Picture::render(30, 20, 1);
    for (scale, repeated) in [(4, true), (2, false)] {
        let ended = customer.upscale(&format!("model-key-{scale}"), &order(&url, scale));
        let file = customer.fetch("GET", &ended.result_url(), &[]);
        // A look is one of our networks'.
        let look = (!repeated).then_some("natural");
        for answer in [&ended, &file] {
            assert_eq!(answer.find_header("x-result-look"), look, "{scale}x");
        }
        let result = file.body;
        assert_eq!(is_repeated(&source, &result, scale), repeated, "{scale}x");
    }
    assert!(
        world
            .logs()
            .contains("a model is served in place of our network")
    );
    world.finish();
}

/// Flags of a `serve` that must not start.
fn assert_serve_refuses(folder: &Path, flags: &[&str], reason: &str) {
    let data: PathBuf = folder.join("data");
    let start = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--results-listen",
        "127.0.0.1:0",
        "--data",
    ];
    let output = upscale()
        .args(start)
        .arg(data)
        .args(flags)
        .current_dir(folder)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && output.stdout.is_empty(),
        "{flags:?} started"
    );
    assert!(error.contains(reason), "{flags:?}: {error}");
}

#[test]
fn serve_does_not_start_with_a_model_that_it_should_not_serve() {
    let (folder, _) = folder();
    let folder = folder.path();
    let two = ["--model-2x", "two.safetensors"];
    assert_serve_refuses(
        folder,
        &two,
        "no card says that its licence allows commercial use",
    );
    write_card(folder, "two.safetensors", "no");
    assert_serve_refuses(folder, &two, "does not allow commercial use");
    write_card(folder, "four.safetensors", "yes");
    let wrong = ["--model-2x", "four.safetensors"];
    assert_serve_refuses(folder, &wrong, "is a 4x model, but 2x was requested");
    let wrong = ["--model-1x", "four.safetensors"];
    assert_serve_refuses(folder, &wrong, "is a 4x model, but 1x was requested");
    fs::write(folder.join("hostile.pth"), b"\x80\x02cposix\nsystem\n.").unwrap();
    let hostile = ["--model-4x", "hostile.pth", "--allow-non-commercial"];
    assert_serve_refuses(
        folder,
        &hostile,
        "neither a safetensors file nor one of PyTorch's",
    );
    assert_serve_refuses(folder, &["--model-4x", "nothing.pth"], "No such file");
}
