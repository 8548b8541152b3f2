//! Links: relative ones lead to a file, and to a heading where they name one; those of the book stay in the book, for a
//! reader of the built pages has nothing else. Addresses outside are looked at, not followed.

use std::{collections::BTreeMap, path::Path};

use url::Url;

use super::pages::{Page, all, normal, read, root};

/// Folders of the project whose paths, where a page names one in code, must exist.
const FOLDERS: [&str; 7] = [
    "crates/",
    "docs/",
    "checks/",
    "packages/",
    "training/",
    "clients/",
    "bench/",
];

/// Pages of the book in the order of its contents.
fn book() -> Vec<String> {
    let contents = read("docs/SUMMARY.md");
    contents
        .links
        .iter()
        .map(|link| format!("docs/{link}"))
        .collect()
}

fn assert_none(breaches: &[String]) {
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn every_page_under_docs_is_in_the_book_once() {
    let mut listed = book();
    listed.push("docs/SUMMARY.md".to_owned());
    listed.sort();
    let pages = all().into_iter().map(|page| page.name);
    let pages: Vec<_> = pages.filter(|name| name.starts_with("docs/")).collect();
    assert_eq!(listed, pages);
}

#[test]
fn every_link_leads_somewhere() {
    let pages: BTreeMap<_, _> = all()
        .into_iter()
        .map(|page| (page.name.clone(), page))
        .collect();
    let mut breaches = Vec::new();
    let mut links = 0;
    for page in pages.values() {
        for link in &page.links {
            links += 1;
            if let Err(why) = check(link, page, &pages) {
                breaches.push(format!("{}: {link}: {why}", page.name));
            }
        }
    }
    assert!(links > 100, "only {links} links found");
    assert_none(&breaches);
}

fn check(link: &str, page: &Page, pages: &BTreeMap<String, Page>) -> Result<(), String> {
    if link.contains(':') {
        let url = Url::parse(link).map_err(|error| error.to_string())?;
        let is_good = matches!(url.scheme(), "http" | "https") && url.has_host();
        return is_good
            .then_some(())
            .ok_or("not an address of the web".to_owned());
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = Path::new(&page.name).parent().unwrap();
    let target = match path {
        "" => page.name.clone(),
        path => normal(&folder.join(path)).to_string_lossy().into_owned(),
    };
    if !root().join(&target).exists() {
        return Err(format!("there is no {target}"));
    }
    let is_in_book = page.name.starts_with("docs/");
    if is_in_book && !target.starts_with("docs/") {
        return Err("leads out of the book, where the built pages cannot follow".to_owned());
    }
    if anchor.is_empty() {
        return Ok(());
    }
    let headings = &pages.get(&target).ok_or("no page, so no heading")?.headings;
    headings
        .contains(anchor)
        .then_some(())
        .ok_or_else(|| format!("no heading of {target} is linked so"))
}

#[test]
fn every_path_that_a_page_names_exists() {
    let mut breaches = Vec::new();
    let mut paths = 0;
    for page in all() {
        for code in &page.code {
            let is_path = FOLDERS.iter().any(|folder| code.starts_with(folder))
                && !code.contains([' ', '*', '{', '…', '<'])
                && !code
                    .chars()
                    .any(|c| c.is_ascii_uppercase() && code.contains("NAME"));
            if is_path {
                paths += 1;
                let path = code.split(':').next().unwrap().trim_end_matches('/');
                if !root().join(path).exists() {
                    breaches.push(format!("{}: {code}", page.name));
                }
            }
        }
    }
    assert!(paths > 20, "only {paths} paths found");
    assert_none(&breaches);
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let pages: BTreeMap<_, _> = ["docs/errors.md", "docs/limits-and-money.md"]
        .map(|name| (name.to_owned(), read(name)))
        .into();
    let page = &pages["docs/errors.md"];
    let says = |link: &str| check(link, page, &pages).map_err(drop);
    assert_eq!(says("limits-and-money.md#limits"), Ok(()));
    assert_eq!(says("#every-code"), Ok(()));
    assert_eq!(says("https://example.com/a"), Ok(()));
    for bad in [
        "nothing.md",
        "limits-and-money.md#nothing",
        "#nothing",
        "../README.md",
        "https:///",
        "file:///etc/passwd",
    ] {
        assert_eq!(says(bad), Err(()), "{bad}");
    }
}
