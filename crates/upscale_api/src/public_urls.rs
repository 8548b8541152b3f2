//! The addresses that clients are told: of the API and of result files. An address that could not work is refused before
//! anyone is told it: a dead link looks like a lost image.

use std::net::SocketAddr;

use url::{Host, Url};

/// What the operator said, and where this process listens.
#[derive(Debug, Clone, Copy)]
pub struct Addresses<'a> {
    /// Where the API listens; it serves result files as well.
    pub api: SocketAddr,
    /// Where result files are served besides, on a listener of their own.
    pub results: Option<SocketAddr>,
    /// The API as clients reach it, as `--base-url` says.
    pub base_url: Option<&'a str>,
    /// Result files as clients reach them, as `--result-url` says.
    pub result_url: Option<&'a str>,
    /// Whether both listeners speak TLS.
    pub is_tls: bool,
}

/// What clients are told, without a slash at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrls {
    /// URL of the API without a trailing slash; begins `urls.get`.
    pub base_url: String,
    /// URL of result links without a trailing slash; begins `result.url`.
    pub result_url: String,
}

impl PublicUrls {
    /// What was said counts; what was not is where the listener is, where that can be reached.
    ///
    /// # Errors
    /// A sentence that says which address would be dead, and which flag names a living one.
    pub fn decide(given: &Addresses<'_>) -> Result<Self, String> {
        let base_url = match given.base_url {
            Some(url) => check_host(url, "--base-url")?,
            None => given.listener(
                given.api,
                "the API",
                "--base-url",
                "https://api.example.com",
            )?,
        };
        let result_url = match (given.result_url, given.results) {
            (Some(url), _) => check_host(url, "--result-url")?,
            (None, None) => base_url.clone(),
            (None, Some(own)) => {
                let files = "https://files.example.com";
                given.listener(own, "result files", "--result-url", files)?
            }
        };
        let urls = Self {
            base_url,
            result_url,
        };
        urls.check_together(given)?;
        Ok(urls)
    }

    /// One address for the world beside one that no one in it can reach.
    fn check_together(&self, given: &Addresses<'_>) -> Result<(), String> {
        let (base_url, result_url) = (&self.base_url, &self.result_url);
        let is_of_one_host = || host(base_url).is_some() && host(base_url) == host(result_url);
        let is_local = || is_loopback(base_url) && is_loopback(result_url);
        if given.base_url.is_some()
            && given.result_url.is_none()
            && given.results.is_some()
            && !is_of_one_host()
            && !is_local()
        {
            return Err(format!(
                "clients reach the API at {base_url}, and result links would name {result_url}: say with --result-url how \
                 clients reach --results-listen, or leave that out, and the files are served under --base-url"
            ));
        }
        if given.base_url.is_none() && is_loopback(base_url) && !is_loopback(result_url) {
            return Err(format!(
                "clients reach result files at {result_url}, and would be told to read their tasks at {base_url}, on their \
                 own machine: name the API with --base-url"
            ));
        }
        Ok(())
    }
}

impl Addresses<'_> {
    fn listener(
        &self,
        address: SocketAddr,
        what: &str,
        flag: &str,
        example: &str,
    ) -> Result<String, String> {
        let scheme = if self.is_tls { "https" } else { "http" };
        let url = format!("{scheme}://{address}");
        if address.ip().to_canonical().is_unspecified() {
            return Err(format!(
                "clients cannot be told {url}, which is every address of this machine and none of theirs: name {what} as \
                 clients reach it with {flag}, such as {flag} {example}, or listen on one address"
            ));
        }
        Ok(url)
    }
}

fn check_host(url: &str, flag: &str) -> Result<String, String> {
    let is_unspecified = match host(url) {
        Some(Host::Ipv4(ip)) => ip.is_unspecified(),
        Some(Host::Ipv6(ip)) => ip.to_canonical().is_unspecified(),
        Some(Host::Domain(_)) => false,
        None => return Err(format!("{flag} {url} names no host")),
    };
    if is_unspecified {
        return Err(format!(
            "{flag} {url} is no address that clients could reach: name the host as they know it"
        ));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

fn host(url: &str) -> Option<Host> {
    Url::parse(url).ok()?.host().map(|host| host.to_owned())
}

/// Whether only this machine can reach the host of the URL.
pub(crate) fn is_loopback(url: &str) -> bool {
    match host(url) {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(
        api: &str,
        results: &str,
        base_url: &str,
        result_url: &str,
    ) -> Result<(String, String), String> {
        let reported = |text: &'static str| (!text.is_empty()).then_some(text);
        let leaked = |text: &str| reported(Box::leak(text.to_owned().into_boxed_str()));
        let decided = PublicUrls::decide(&Addresses {
            api: api.parse().unwrap(),
            results: leaked(results).map(|address| address.parse().unwrap()),
            base_url: leaked(base_url),
            result_url: leaked(result_url),
            is_tls: false,
        });
        decided.map(|urls| (urls.base_url, urls.result_url))
    }

    #[test]
    fn result_links_are_the_apis_unless_something_else_can_be_reached() {
        const A: &str = "https://api.example.com";
        const F: &str = "https://files.example.com";
        const HERE: &str = "http://127.0.0.1:8080";
        const LAN: &str = "http://192.168.1.2:8080";
        for (api, results, base_url, result_url, expected) in [
            ("127.0.0.1:8080", "", "", "", (HERE, HERE)),
            ("0.0.0.0:8080", "", A, "", (A, A)),
            ("127.0.0.1:8080", "", A, "", (A, A)),
            ("127.0.0.1:8080", "", "https://api.example.com/", "", (A, A)),
            ("192.168.1.2:8080", "", "", "", (LAN, LAN)),
            ("0.0.0.0:8080", "0.0.0.0:8081", A, F, (A, F)),
            // A name of its own for the same listener.
            ("0.0.0.0:8080", "", A, F, (A, F)),
            ("0.0.0.0:8080", "", HERE, "", (HERE, HERE)),
            (
                "127.0.0.1:8080",
                "127.0.0.1:8081",
                "",
                "",
                (HERE, "http://127.0.0.1:8081"),
            ),
            (
                "0.0.0.0:8080",
                "127.0.0.1:8081",
                HERE,
                "",
                (HERE, "http://127.0.0.1:8081"),
            ),
            (
                "192.168.1.2:8080",
                "192.168.1.2:8081",
                LAN,
                "",
                (LAN, "http://192.168.1.2:8081"),
            ),
            (
                "[::1]:8080",
                "",
                "",
                "",
                ("http://[::1]:8080", "http://[::1]:8080"),
            ),
        ] {
            let decided = decide(api, results, base_url, result_url).unwrap();
            assert_eq!((decided.0.as_str(), decided.1.as_str()), expected, "{api}");
        }
    }

    #[test]
    fn links_that_could_not_work_are_refused_with_the_flag_that_helps() {
        const A: &str = "https://api.example.com";
        const F: &str = "https://files.example.com";
        for (api, results, base_url, result_url, flag) in [
            ("0.0.0.0:8080", "", "", "", "--base-url"),
            ("[::]:8080", "", "", "", "--base-url"),
            ("[::ffff:0.0.0.0]:8080", "", "", "", "--base-url"),
            ("0.0.0.0:8080", "", "", F, "--base-url"),
            ("127.0.0.1:8080", "", "", F, "--base-url"),
            (
                "127.0.0.1:8080",
                "",
                "http://0.0.0.0:8080",
                "",
                "--base-url",
            ),
            ("127.0.0.1:8080", "", "http://[::]:8080", "", "--base-url"),
            ("127.0.0.1:8080", "", A, "http://0.0.0.0", "--result-url"),
            ("0.0.0.0:8080", "0.0.0.0:8081", A, "", "--result-url"),
            ("127.0.0.1:8080", "127.0.0.1:8081", A, "", "--result-url"),
            ("10.0.0.1:8080", "10.0.0.1:8081", A, "", "--result-url"),
            ("127.0.0.1:8080", "0.0.0.0:8081", "", "", "--result-url"),
        ] {
            let words = decide(api, results, base_url, result_url).unwrap_err();
            assert!(words.contains(flag), "{api} {results} {base_url}: {words}");
        }
    }

    #[test]
    fn with_tls_the_listeners_own_address_is_https() {
        let urls = PublicUrls::decide(&Addresses {
            api: "192.0.2.1:8443".parse().unwrap(),
            results: None,
            base_url: None,
            result_url: None,
            is_tls: true,
        });
        assert_eq!(urls.unwrap().result_url, "https://192.0.2.1:8443");
    }
}
