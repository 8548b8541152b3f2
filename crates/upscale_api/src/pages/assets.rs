//! Stylesheet and scripts, inside the binary. Their addresses carry a hash of their bytes, so that a browser may keep
//! them forever and never shows a new page in an old dress.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};
use upscale_core::hex;

const STYLE: &str = include_str!("../../assets/console.css");
const SCRIPT: &str = include_str!("../../assets/console.js");
const COMPARE: &str = include_str!("../../assets/compare.js");
const ICON: &str = include_str!("../../assets/icon.svg");

/// Addresses of the stylesheet, the scripts and the icon.
pub(crate) static STYLE_URL: LazyLock<String> = LazyLock::new(|| url("console.css", STYLE));
pub(crate) static SCRIPT_URL: LazyLock<String> = LazyLock::new(|| url("console.js", SCRIPT));
pub(crate) static COMPARE_URL: LazyLock<String> = LazyLock::new(|| url("compare.js", COMPARE));
pub(crate) static ICON_URL: LazyLock<String> = LazyLock::new(|| url("icon.svg", ICON));

fn url(name: &str, text: &str) -> String {
    let hash = hex(&Sha256::digest(text.as_bytes()));
    format!("/assets/{name}?{}", &hash[..16])
}

/// A stylesheet, script or icon that is built into the binary.
pub(crate) struct Asset {
    /// Its media type.
    pub(crate) kind: &'static str,
    pub(crate) text: &'static str,
}

/// The one of this name.
pub(crate) fn find_asset(name: &str) -> Option<Asset> {
    let (kind, text) = match name {
        "console.css" => ("text/css; charset=utf-8", STYLE),
        "console.js" => ("text/javascript; charset=utf-8", SCRIPT),
        "compare.js" => ("text/javascript; charset=utf-8", COMPARE),
        "icon.svg" => ("image/svg+xml", ICON),
        _ => return None,
    };
    Some(Asset { kind, text })
}
