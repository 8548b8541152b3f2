//! Chooses the networks that ship: for each scale the best tier that has a weight file. Weights are data; a better
//! network is shipped by putting its file beside the others.

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
    }
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("shipped.rs"), code)
}
