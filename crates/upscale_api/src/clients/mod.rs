//! The Python and the TypeScript client as packages that pip and npm install from a running service: made of the sources
//! in `clients/`, which are inside the binary, and the same bytes for every build of one source. No key is needed.

mod tarball;
mod wheel;

use std::sync::LazyLock;

use axum::{
    extract::{Path, State},
    http::header,
    response::{IntoResponse, Response},
};

use crate::{api_state::ApiState, error::ApiError};

/// The licence that both are under goes with them.
const LICENSE: &str = include_str!("../../../../LICENSE");

/// A package as a file.
struct Package {
    /// Names version and, of a wheel, where it runs: pip reads it.
    file: String,
    kind: &'static str,
    bytes: Vec<u8>,
}

/// Made when they are first asked for. A source that does not make a package is found by the tests.
static PACKAGES: LazyLock<Result<[Package; 2], String>> = LazyLock::new(|| {
    let wheel = wheel::make().map_err(|error| format!("the wheel: {error}"))?;
    let tarball = tarball::make().map_err(|error| format!("the tarball: {error}"))?;
    Ok([wheel, tarball])
});

fn packages() -> Result<&'static [Package; 2], ApiError> {
    PACKAGES.as_ref().map_err(|detail| ApiError::Internal {
        detail: detail.clone(),
    })
}

/// The lines that install them from the service at this address: Python's, then TypeScript's.
pub(crate) fn install_lines(base_url: &str) -> [String; 2] {
    let url = |at: usize| {
        let package = PACKAGES.as_ref().ok().map(|all| all[at].file.as_str());
        format!("{base_url}/clients/{}", package.unwrap_or_default())
    };
    [
        format!("pip install {}", url(0)),
        format!("npm install {}", url(1)),
    ]
}

/// `GET /clients`: the two lines, as text.
pub(crate) async fn list(State(state): State<ApiState>) -> Result<Response, ApiError> {
    packages()?;
    let lines = install_lines(&state.base_url).join("\n") + "\n";
    let kind = (header::CONTENT_TYPE, "text/plain; charset=utf-8");
    Ok(([kind], lines).into_response())
}

/// `GET /clients/{file}`.
pub(crate) async fn package(Path(file): Path<String>) -> Result<Response, ApiError> {
    let package = packages()?.iter().find(|package| package.file == file);
    let package = package.ok_or(ApiError::NotFound)?;
    let kind = (header::CONTENT_TYPE, package.kind);
    Ok(([kind], package.bytes.as_slice()).into_response())
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path as FilePath};

    use super::*;

    /// Names of the files of a folder of the repository.
    pub(super) fn names_in(folder: &str) -> BTreeSet<String> {
        let root = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../clients");
        let files = fs::read_dir(root.join(folder)).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| !name.starts_with("__pycache__"))
            .collect()
    }

    #[test]
    fn each_package_is_named_by_its_version_and_the_same_every_time() {
        let [wheel, tarball] = PACKAGES.as_ref().unwrap();
        assert_eq!(wheel.file, "upscale_api-0.1.0-py3-none-any.whl");
        assert_eq!(tarball.file, "upscale-api-0.1.0.tgz");
        assert_eq!(wheel::make().unwrap().bytes, wheel.bytes);
        assert_eq!(tarball::make().unwrap().bytes, tarball.bytes);
        assert_eq!(
            install_lines("https://api.example.com"),
            [
                "pip install https://api.example.com/clients/upscale_api-0.1.0-py3-none-any.whl",
                "npm install https://api.example.com/clients/upscale-api-0.1.0.tgz",
            ]
        );
    }
}
