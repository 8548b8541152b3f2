//! Chooses the networks that ship: for each scale the best tier that has a weight file, and the network that restores
//! noisy and soft pictures where there is one, with the layers that make its looks crisper. Weights are data; a better network is shipped by putting its file beside
//! the others. Face networks ship when both scales have one. Also fetches the face detector's model.

#[path = "build/detector.rs"]
mod detector;

use std::path::Path;
use std::{env, fs, io};

/// Best first; the names of tiers as `training/` gives them.
const TIERS: [&str; 2] = ["s", "f"];

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=weights");
    let here = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let weights = Path::new(&here).join("weights");
    let mut code = String::new();
    for scale in [2, 4] {
        let files = TIERS.map(|tier| weights.join(format!("{tier}-x{scale}.safetensors")));
        let best = files.iter().find(|file| file.exists());
        let best = best.ok_or_else(|| io::Error::other(format!("no weights for {scale}x")))?;
        code += &format!("/// The network for {scale}x.\n");
        code += &format!("pub(crate) const X{scale}: &[u8] = include_bytes!({best:?});\n");
        let restoring = weights.join(format!("restore-x{scale}.safetensors"));
        let found = match restoring.exists() {
            true => format!("Some(include_bytes!({restoring:?}))"),
            false => "None".to_owned(),
        };
        let crisp = weights.join(format!("crisp-x{scale}.safetensors"));
        let crisper = match crisp.exists() {
            true => format!("Some(include_bytes!({crisp:?}))"),
            false => "None".to_owned(),
        };
        code += &format!("/// Its layers, trained for finer detail, at {scale}x.\n");
        code += &format!("pub(crate) const CRISP_X{scale}: Option<&[u8]> = {crisper};\n");
        code += &format!("/// The network that restores at {scale}x.\n");
        code += &format!("pub(crate) const RESTORE_X{scale}: Option<&[u8]> = {found};\n");
    }
    let faces = [2, 4].map(|scale| weights.join(format!("face-x{scale}.safetensors")));
    code += "/// The face networks for 2x and 4x.\n";
    code += "pub(crate) const FACES: Option<[&[u8]; 2]> = ";
    code += &match faces.iter().all(|file| file.exists()) {
        true => format!(
            "Some([include_bytes!({:?}), include_bytes!({:?})]);\n",
            faces[0], faces[1]
        ),
        false => "None;\n".to_owned(),
    };
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    detector::copy_model(Path::new(&out)).map_err(|error| io::Error::other(error.to_string()))?;
    fs::write(Path::new(&out).join("shipped.rs"), code)
}
