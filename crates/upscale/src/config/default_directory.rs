//! Where a service's data is when neither a flag, a variable nor the file says so.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// `$XDG_DATA_HOME/upscale`, else `~/.local/share/upscale` (XDG Base Directory Specification 0.8); none for a process that
/// has no home, as under systemd.
pub(crate) fn default_directory() -> Option<PathBuf> {
    directory_of(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME"))
}

/// The specification passes over a relative path.
fn directory_of(data_home: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: Option<OsString>| {
        let path = path.map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let below_home = || absolute(home).map(|home| home.join(".local/share"));
    let folder = absolute(data_home).or_else(below_home)?;
    // A service's user often has none, and / for its name.
    (folder != Path::new("/.local/share")).then(|| folder.join("upscale"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_where_the_desktop_says_or_below_the_home() {
        let found = |data_home: Option<&str>, home: Option<&str>| {
            let directory = directory_of(data_home.map(Into::into), home.map(Into::into));
            directory.map(|directory| directory.display().to_string())
        };
        let at = |text: &str| Some(text.to_owned());
        assert_eq!(found(Some("/d"), Some("/people/ann")), at("/d/upscale"));
        let below_home = at("/people/ann/.local/share/upscale");
        for data_home in [None, Some(""), Some("relative")] {
            assert_eq!(found(data_home, Some("/people/ann")), below_home);
        }
        assert_eq!(found(None, None), None);
        assert_eq!(found(None, Some("/")), None);
    }
}
