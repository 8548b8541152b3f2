//! Chooses the networks that ship: for each scale the best tier that has a weight file, and the network that restores
//! noisy and soft pictures where there is one, with the layers that make its looks crisper. Weights are data; a better
//! network is shipped by putting its file beside the others, and its ranges (`src/calibrate.rs` writes them). Face
//! networks ship when both scales have one. Also fetches the face detector's model.

#[path = "build/detector.rs"]
mod detector;

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Best first; the names of tiers as `training/` gives them.
const TIERS: [&str; 2] = ["s", "f"];

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=weights");
    let here = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let weights = Path::new(&here).join("weights");
    let mut code = String::new();
    for scale in [2, 4] {
        let names = TIERS.map(|tier| format!("{tier}-x{scale}"));
        let best = names.iter().find(|name| file(&weights, name).exists());
        let best = best.ok_or_else(|| io::Error::other(format!("no weights for {scale}x")))?;
        code += &constant(&format!("X{scale}"), "Shipped", &shipped(&weights, best));
        let restoring = format!("restore-x{scale}");
        let restoring = match file(&weights, &restoring).exists() {
            true => format!("Some({})", shipped(&weights, &restoring)),
            false => "None".to_owned(),
        };
        code += &constant(&format!("RESTORE_X{scale}"), "Option<Shipped>", &restoring);
    }
    let faces = [2, 4].map(|scale| format!("face-x{scale}"));
    let found = match faces.iter().all(|name| file(&weights, name).exists()) {
        true => format!(
            "Some([{}])",
            faces.map(|name| shipped(&weights, &name)).join(", ")
        ),
        false => "None".to_owned(),
    };
    code += &constant("FACES", "Option<[Shipped; 2]>", &found);
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    detector::copy_model(Path::new(&out)).map_err(|error| io::Error::other(error.to_string()))?;
    fs::write(Path::new(&out).join("shipped.rs"), code)
}

fn file(weights: &Path, name: &str) -> PathBuf {
    weights.join(format!("{name}.safetensors"))
}

fn constant(name: &str, kind: &str, value: &str) -> String {
    format!("/// Chosen by `build.rs`.\npub(crate) const {name}: {kind} = {value};\n")
}

/// A `Shipped` of the files that stand beside the weights.
fn shipped(weights: &Path, name: &str) -> String {
    let there = |file: String| match weights.join(&file).exists() {
        true => format!("Some({})", included(&file)),
        false => "None".to_owned(),
    };
    let crisp = match name.strip_prefix("restore") {
        Some(scale) => there(format!("crisp{scale}.safetensors")),
        None => "None".to_owned(),
    };
    let ranges = there(format!("{name}.ranges"));
    let weights = included(&format!("{name}.safetensors"));
    format!("Shipped {{ weights: {weights}, crisp: {crisp}, ranges: {ranges} }}")
}

/// Its path is known to the compiler and not to this script: checkouts that share a target directory each read their own.
fn included(file: &str) -> String {
    format!("include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/weights/{file}\"))")
}
