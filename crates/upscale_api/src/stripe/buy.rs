//! The way to a payment: the price table, a checkout that is kept, and the page where it is paid. The one call to Stripe (a
//! Checkout Session) is made by anyone who starts the service and handed in: this room opens no connections.

use std::{pin::Pin, sync::Arc};

use upscale_core::{AccountId, Package};
use upscale_store::{Checkout, CheckoutOutcome, Store};
use url::Url;

/// How purchases are made. Without it there are none, and operators credit accounts.
#[derive(Clone)]
pub struct Stripe {
    /// What is for sale; their names differ.
    pub packages: Arc<[Package]>,
    /// Of the webhook's endpoint (`whsec_…`); several while one is being replaced.
    pub webhook_secrets: Arc<[String]>,
    /// Whether real money moves: events of the other mode are passed over.
    pub is_live: bool,
    /// Scheme, host and port of the pages where checkouts are paid: forms of the console may lead there.
    pub checkout_origin: Arc<str>,
    /// Asks Stripe for the page where a checkout is paid.
    pub open_session: OpenSession,
}

/// Makes a Checkout Session and answers with its address.
pub type OpenSession = Arc<
    dyn Fn(NewSession) -> Pin<Box<dyn Future<Output = Result<String, SessionError>> + Send>>
        + Send
        + Sync,
>;

/// What Stripe needs to know of a checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// What is bought, by whom; its id makes the call repeatable.
    pub checkout: Checkout,
    /// Where the buyer comes back to when they have paid.
    pub success_url: String,
    /// Where they come back to when they have not.
    pub cancel_url: String,
    /// To fill in beforehand.
    pub email: Option<String>,
}

/// Stripe gave no page; the words are for the log.
#[derive(Debug, Clone, thiserror::Error)]
#[error("Stripe made no session: {0}")]
pub struct SessionError(pub String);

/// What becomes of someone's wish to buy.
#[derive(Debug)]
pub enum BuyOutcome {
    /// Send them here.
    PayAt(String),
    /// No package has this name.
    NoSuchPackage,
    /// They began too many checkouts within the hour.
    TooMany,
    /// Stripe or the store could not be asked; nothing was paid.
    Unavailable(String),
}

impl Stripe {
    /// Keeps a checkout, then asks Stripe for its page. The buyer comes back to `page`, with `?order=` when they have
    /// paid and `?left=` when they have not, and the checkout's id.
    pub async fn buy(
        &self,
        store: &Store,
        account: &AccountId,
        package: &str,
        page: &str,
        email: Option<String>,
    ) -> BuyOutcome {
        let Some(package) = self.packages.iter().find(|one| one.name == package) else {
            return BuyOutcome::NoSuchPackage;
        };
        let checkout = match store.payments().open_checkout(account, package).await {
            Ok(CheckoutOutcome::Opened(checkout)) => checkout,
            Ok(CheckoutOutcome::TooMany) => return BuyOutcome::TooMany,
            Ok(CheckoutOutcome::NoSuchAccount) => {
                return BuyOutcome::Unavailable(format!("there is no account {account}"));
            }
            Err(error) => return BuyOutcome::Unavailable(error.to_string()),
        };
        let session = NewSession {
            success_url: format!("{page}?order={}", checkout.id.as_str()),
            cancel_url: format!("{page}?left={}", checkout.id.as_str()),
            checkout,
            email,
        };
        match (self.open_session)(session).await {
            Ok(url) => self.send_to(url),
            Err(error) => BuyOutcome::Unavailable(error.to_string()),
        }
    }

    /// Browsers let a form lead to the one origin that its page names, so a page elsewhere would be a button that does
    /// nothing: better said here.
    fn send_to(&self, url: String) -> BuyOutcome {
        let origin = Url::parse(&url).map(|url| url.origin().ascii_serialization());
        match origin {
            Ok(origin) if origin == *self.checkout_origin => BuyOutcome::PayAt(url),
            Ok(origin) => BuyOutcome::Unavailable(format!(
                "Stripe's pages are at {origin}, configured is {}",
                self.checkout_origin
            )),
            Err(error) => BuyOutcome::Unavailable(format!("Stripe's page: {error}")),
        }
    }
}
