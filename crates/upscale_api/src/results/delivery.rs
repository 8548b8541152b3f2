//! How a result file that is in a bucket reaches the customer, and whether the bucket's own links could.

use upscale_store::{Link, StoreError};
use url::{Host, Url};

use crate::{api_state::ApiState, public_urls::is_loopback};

/// Any name that could be one: signing a link to it asks nothing of the bucket.
const ANY_NAME: &str = "00000000000000000000000000";
const ANY_LINK: Link<'_> = Link {
    is_head: false,
    file_name: "result.png",
    seconds: 60,
};

/// Where the bytes of a result in a bucket pass; files in a directory always come through here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultDelivery {
    /// Through this process, with all headers of the contract: the host of the link serves the file itself.
    #[default]
    Proxy,
    /// Past this process: the link answers 307 to one that the bucket honours for five minutes.
    Redirect,
}

impl ApiState {
    /// From now on files of a bucket reach customers so.
    #[must_use]
    pub fn with_delivery(mut self, delivery: ResultDelivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// A link under which the bucket itself hands out the file; none where files come through here.
    pub(crate) async fn link_elsewhere(
        &self,
        name: &str,
        link: &Link<'_>,
    ) -> Result<Option<String>, StoreError> {
        match self.delivery {
            ResultDelivery::Proxy => Ok(None),
            ResultDelivery::Redirect => self.results.link(name, link).await,
        }
    }

    /// The beginning of all links that customers are sent on to; none where files come through here.
    pub(crate) async fn elsewhere(&self) -> Result<Option<String>, StoreError> {
        self.link_elsewhere(ANY_NAME, &ANY_LINK).await
    }

    /// Whether customers could follow a redirect to the bucket. Credentials that are not there yet are no reason to say no:
    /// nothing can be stored either, and the probe of the storage says so.
    ///
    /// # Errors
    /// A sentence, when they could not.
    pub async fn check_redirects(&self) -> Result<(), String> {
        match self.elsewhere().await {
            Ok(Some(link)) => check_reachable(&link, &self.result_url),
            Ok(None) | Err(_) => Ok(()),
        }
    }
}

fn check_reachable(link: &str, result_url: &str) -> Result<(), String> {
    let Ok(link) = Url::parse(link) else {
        return Ok(());
    };
    let is_for_this_machine = is_loopback(result_url);
    let is_dead = match link.host() {
        Some(Host::Ipv4(ip)) => ip.is_unspecified() || ip.is_loopback() && !is_for_this_machine,
        Some(Host::Ipv6(ip)) => ip.is_unspecified() || ip.is_loopback() && !is_for_this_machine,
        // A name without a dot is one of a container network or of this machine.
        Some(Host::Domain("localhost")) => !is_for_this_machine,
        Some(Host::Domain(name)) => !name.trim_end_matches('.').contains('.'),
        None => false,
    };
    if !is_dead {
        return Ok(());
    }
    Err(format!(
        "--result-delivery redirect would send customers on to {}, which they cannot reach: name the storage as they reach \
         it with --storage-public-url, or leave the flag out, and the files are served here",
        link.origin().ascii_serialization()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_leads_where_customers_can_go() {
        const PUBLIC: &str = "https://api.example.com";
        const LOCAL: &str = "http://127.0.0.1:8080";
        for (link, result_url, is_reachable) in [
            ("https://results.s3.eu-1.amazonaws.com/a?b", PUBLIC, true),
            ("https://203.0.113.7/results/a?b", PUBLIC, true),
            ("http://10.1.2.3:9000/results/a", PUBLIC, true),
            ("http://127.0.0.1:9000/results/a", LOCAL, true),
            ("http://localhost:9000/results/a", LOCAL, true),
            ("http://127.0.0.1:9000/results/a", PUBLIC, false),
            ("http://[::1]:9000/results/a", PUBLIC, false),
            ("http://localhost:9000/results/a", PUBLIC, false),
            ("http://0.0.0.0:9000/results/a", LOCAL, false),
            ("http://minio:9000/results/a", PUBLIC, false),
            ("http://minio:9000/results/a", LOCAL, false),
        ] {
            let checked = check_reachable(link, result_url);
            assert_eq!(checked.is_ok(), is_reachable, "{link} {result_url}");
            if let Err(words) = checked {
                assert!(words.contains("--storage-public-url"), "{words}");
                assert!(!words.contains("/results/a"), "{words}");
            }
        }
    }
}
