//! Copies the face detector's model out of the package that carries it, so that the program can embed it. The
//! model (SeetaFace, BSD-2-Clause) lies in the published package of `rustface`, which offers no way to name it;
//! Cargo knows where the package lies, and its checksum stands in Cargo.lock.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, error::Error, fs};

const PACKAGE: &str = "rustface";
const MODEL: &str = "model/seeta_fd_frontal_v1.0.bin";

/// Writes `face_detector.bin` into the folder `out`.
pub(crate) fn copy_model(out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=Cargo.toml");
    let model = package_folder()?.join(MODEL);
    println!("cargo:rerun-if-changed={}", model.display());
    let bytes = fs::read(&model).map_err(|error| format!("{}: {error}", model.display()))?;
    // Not copied with its dates and permissions: those of a package may be anything.
    Ok(fs::write(out.join("face_detector.bin"), bytes)?)
}

/// Where Cargo unpacked the package. Not offline: Cargo names no package before it has all of the lock file's, and on a
/// new machine it has fetched only those that the program needs, not the tests'.
fn package_folder() -> Result<PathBuf, Box<dyn Error>> {
    let output = Command::new(variable("CARGO")?)
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", &variable("TARGET")?])
        .current_dir(variable("CARGO_MANIFEST_DIR")?)
        .output()?;
    if !output.status.success() {
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("cargo metadata failed: {reported}").into());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut named = packages.filter(|package| package["name"] == PACKAGE);
    let manifest = named.find_map(|package| package["manifest_path"].as_str());
    let manifest = manifest.ok_or_else(|| format!("cargo metadata knows no {PACKAGE}"))?;
    Ok(Path::new(manifest).with_file_name(""))
}

fn variable(name: &str) -> Result<String, Box<dyn Error>> {
    env::var(name).map_err(|error| format!("{name}: {error}").into())
}
