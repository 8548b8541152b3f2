//! The Python client as a wheel (PyPA, binary distribution format 1.0): a zip of its modules, and what pip wants to know,
//! read from `pyproject.toml`.

use std::{
    error::Error,
    io::{Cursor, Write},
};

use data_encoding::BASE64URL_NOPAD;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::{LICENSE, Package};

const PROJECT: &str = include_str!("../../../../clients/python/pyproject.toml");
const README: &str = include_str!("../../../../clients/python/README.md");
const MODULES: [(&str, &str); 7] = [
    (
        "__init__.py",
        include_str!("../../../../clients/python/src/upscale_api/__init__.py"),
    ),
    (
        "_client.py",
        include_str!("../../../../clients/python/src/upscale_api/_client.py"),
    ),
    (
        "_errors.py",
        include_str!("../../../../clients/python/src/upscale_api/_errors.py"),
    ),
    (
        "_protocol.py",
        include_str!("../../../../clients/python/src/upscale_api/_protocol.py"),
    ),
    (
        "_task.py",
        include_str!("../../../../clients/python/src/upscale_api/_task.py"),
    ),
    (
        "_upscales.py",
        include_str!("../../../../clients/python/src/upscale_api/_upscales.py"),
    ),
    (
        "py.typed",
        include_str!("../../../../clients/python/src/upscale_api/py.typed"),
    ),
];
const WHEEL: &str =
    "Wheel-Version: 1.0\nGenerator: upscale\nRoot-Is-Purelib: true\nTag: py3-none-any\n";

/// What `pyproject.toml` says of the package; the rest of it is for those who work on it.
#[derive(Deserialize)]
struct PyProject {
    project: Project,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Project {
    name: String,
    version: String,
    description: String,
    requires_python: String,
    license: String,
    dependencies: Vec<String>,
    classifiers: Vec<String>,
}

impl Project {
    /// `upscale_api-0.1.0`, as every name in a wheel begins.
    fn stem(&self) -> String {
        format!("{}-{}", self.name.replace('-', "_"), self.version)
    }

    /// Core metadata 2.4; the README is its body.
    fn metadata(&self) -> String {
        let mut lines = format!(
            "Metadata-Version: 2.4\nName: {}\nVersion: {}\nSummary: {}\nLicense-Expression: {}\nLicense-File: LICENSE\n",
            self.name, self.version, self.description, self.license
        );
        for classifier in &self.classifiers {
            lines += &format!("Classifier: {classifier}\n");
        }
        lines += &format!("Requires-Python: {}\n", self.requires_python);
        for dependency in &self.dependencies {
            lines += &format!("Requires-Dist: {dependency}\n");
        }
        lines + "Description-Content-Type: text/markdown\n\n" + README
    }

    /// Every file but the record: where it goes, and what is in it.
    fn files(&self) -> Vec<(String, String)> {
        let package = self.name.replace('-', "_");
        let module = |(name, text): (&str, &str)| (format!("{package}/{name}"), text.to_owned());
        let info = |name: &str, text: String| (format!("{}.dist-info/{name}", self.stem()), text);
        let mut files: Vec<_> = MODULES.into_iter().map(module).collect();
        files.push(info("METADATA", self.metadata()));
        files.push(info("WHEEL", WHEEL.to_owned()));
        files.push(info("licenses/LICENSE", LICENSE.to_owned()));
        files
    }
}

/// # Errors
/// When `pyproject.toml` does not say what a wheel has to.
pub(super) fn make() -> Result<Package, Box<dyn Error + Send + Sync>> {
    let project = toml::from_str::<PyProject>(PROJECT)?.project;
    let stem = project.stem();
    let mut files = project.files();
    let record = format!("{stem}.dist-info/RECORD");
    let lines = files.iter().map(|(name, text)| record_line(name, text));
    let text = lines.collect::<String>() + &format!("{record},,\n");
    files.push((record, text));
    Ok(Package {
        file: format!("{stem}-py3-none-any.whl"),
        kind: "application/zip",
        bytes: zipped(&files)?,
    })
}

fn record_line(name: &str, text: &str) -> String {
    let hash = BASE64URL_NOPAD.encode(&Sha256::digest(text.as_bytes()));
    format!("{name},sha256={hash},{}\n", text.len())
}

/// As they are, and of 1980, which is a zip's beginning of time: no clock is in the bytes.
fn zipped(files: &[(String, String)]) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(zip::DateTime::default())
        .unix_permissions(0o644);
    for (name, text) in files {
        archive.start_file(name.as_str(), options)?;
        archive.write_all(text.as_bytes())?;
    }
    Ok(archive.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, io::Read};

    use zip::ZipArchive;

    use super::{super::tests::names_in, *};

    fn text_of(archive: &mut ZipArchive<Cursor<Vec<u8>>>, name: &str) -> String {
        let mut text = String::new();
        let mut file = archive.by_name(name).unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn it_holds_every_module_and_its_record_is_right() {
        let mut archive = ZipArchive::new(Cursor::new(make().unwrap().bytes)).unwrap();
        let modules: BTreeSet<String> = archive
            .file_names()
            .map(Result::unwrap)
            .filter_map(|name| name.strip_prefix("upscale_api/").map(str::to_owned))
            .collect();
        assert_eq!(modules, names_in("python/src/upscale_api"));
        let record = text_of(&mut archive, "upscale_api-0.1.0.dist-info/RECORD");
        assert_eq!(record.lines().count(), archive.len());
        for line in record.lines() {
            let name = line.split(',').next().unwrap();
            if name.ends_with("/RECORD") {
                assert_eq!(line, format!("{name},,"));
                continue;
            }
            let text = text_of(&mut archive, name);
            assert_eq!(format!("{line}\n"), record_line(name, &text));
        }
        let metadata = text_of(&mut archive, "upscale_api-0.1.0.dist-info/METADATA");
        for line in [
            "Name: upscale-api",
            "Requires-Dist: httpx>=0.28,<0.29",
            "Requires-Python: >=3.10",
        ] {
            assert!(
                metadata.lines().any(|found| found == line),
                "{line}: {metadata}"
            );
        }
    }
}
