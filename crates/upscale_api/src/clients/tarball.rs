//! The TypeScript client as npm packs it: a gzip of a tar, every file below `package/`. What runs is JavaScript, which
//! `tsc` makes of the sources and which is kept beside them, so that a build of the service needs no Node; the check of
//! the clients makes it again and compares.

use std::{error::Error, io::Write};

use flate2::{Compression, GzBuilder};
use serde::Deserialize;
use tar::{Builder, Header};

use super::{LICENSE, Package};

const PACKAGE: &str = include_str!("../../../../clients/typescript/package.json");
const README: &str = include_str!("../../../../clients/typescript/README.md");
const MODULES: [(&str, &str); 14] = [
    (
        "client.d.ts",
        include_str!("../../../../clients/typescript/dist/src/client.d.ts"),
    ),
    (
        "client.js",
        include_str!("../../../../clients/typescript/dist/src/client.js"),
    ),
    (
        "errors.d.ts",
        include_str!("../../../../clients/typescript/dist/src/errors.d.ts"),
    ),
    (
        "errors.js",
        include_str!("../../../../clients/typescript/dist/src/errors.js"),
    ),
    (
        "http.d.ts",
        include_str!("../../../../clients/typescript/dist/src/http.d.ts"),
    ),
    (
        "http.js",
        include_str!("../../../../clients/typescript/dist/src/http.js"),
    ),
    (
        "index.d.ts",
        include_str!("../../../../clients/typescript/dist/src/index.d.ts"),
    ),
    (
        "index.js",
        include_str!("../../../../clients/typescript/dist/src/index.js"),
    ),
    (
        "task.d.ts",
        include_str!("../../../../clients/typescript/dist/src/task.d.ts"),
    ),
    (
        "task.js",
        include_str!("../../../../clients/typescript/dist/src/task.js"),
    ),
    (
        "tries.d.ts",
        include_str!("../../../../clients/typescript/dist/src/tries.d.ts"),
    ),
    (
        "tries.js",
        include_str!("../../../../clients/typescript/dist/src/tries.js"),
    ),
    (
        "upscales.d.ts",
        include_str!("../../../../clients/typescript/dist/src/upscales.d.ts"),
    ),
    (
        "upscales.js",
        include_str!("../../../../clients/typescript/dist/src/upscales.js"),
    ),
];

#[derive(Deserialize)]
struct PackageJson {
    name: String,
    version: String,
}

/// # Errors
/// When `package.json` names no version.
pub(super) fn make() -> Result<Package, Box<dyn Error + Send + Sync>> {
    let package: PackageJson = serde_json::from_str(PACKAGE)?;
    // Neither a clock nor a file's name is in the gzip's head.
    let gzip = GzBuilder::new().write(Vec::new(), Compression::best());
    let mut archive = Builder::new(gzip);
    add(&mut archive, "package.json", PACKAGE)?;
    add(&mut archive, "README.md", README)?;
    add(&mut archive, "LICENSE", LICENSE)?;
    for (name, text) in MODULES {
        add(&mut archive, &format!("dist/src/{name}"), text)?;
    }
    Ok(Package {
        file: format!("{}-{}.tgz", package.name, package.version),
        kind: "application/gzip",
        bytes: archive.into_inner()?.finish()?,
    })
}

fn add(archive: &mut Builder<impl Write>, name: &str, text: &str) -> std::io::Result<()> {
    let mut header = Header::new_ustar();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(0);
    archive.append_data(&mut header, format!("package/{name}"), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use flate2::read::GzDecoder;
    use tar::Archive;

    use super::{super::tests::names_in, *};

    #[test]
    fn it_holds_all_that_package_json_says_is_in_it() {
        let bytes = make().unwrap().bytes;
        let mut archive = Archive::new(GzDecoder::new(bytes.as_slice()));
        let names: BTreeSet<String> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        let modules = names_in("typescript/dist/src").into_iter();
        let mut expected: BTreeSet<String> = modules
            .map(|name| format!("package/dist/src/{name}"))
            .collect();
        // Of each source, what runs and what it is to a type checker.
        assert_eq!(expected.len(), 2 * names_in("typescript/src").len());
        for name in ["package.json", "README.md", "LICENSE"] {
            expected.insert(format!("package/{name}"));
        }
        assert_eq!(names, expected);
    }
}
