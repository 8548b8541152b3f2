//! The shop: what is for sale, and what is known of a checkout when its buyer comes back. They come back before or after
//! Stripe has told us of the payment, so the page says which, and nothing more than is known.

use serde::Deserialize;
use upscale_core::{CheckoutId, Credits, Package};

use super::{error::ConsoleError, session::SignedIn, shown::grouped, state::ConsoleState};
use crate::stripe::Stripe;

/// The price table.
pub(crate) struct Shop {
    pub(crate) packages: Vec<PackageView>,
    /// Whether no real money moves.
    pub(crate) is_test: bool,
}

/// One package.
pub(crate) struct PackageView {
    pub(crate) name: String,
    pub(crate) credits: String,
    /// Upscales that it pays for.
    pub(crate) tasks: String,
    pub(crate) price: String,
    /// What one of them costs, rounded up to the currency's smallest unit; none where it pays for none.
    pub(crate) each: Option<String>,
}

/// The checkout that a buyer comes back from: `?order=` when they have paid, `?left=` when they have not. Text, because an
/// `order` that is no id still says that they have.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct WayBack {
    order: String,
    left: String,
}

/// What is known of it.
pub(crate) enum CheckoutView {
    /// It is paid: so many credits.
    Credited(String),
    /// Its buyer says so; Stripe does not, yet. The checkout's id.
    Waiting(String),
    /// Left without paying.
    Left,
}

impl Shop {
    /// `task_price` says how many upscales a package pays for.
    pub(crate) fn of(stripe: &Stripe, task_price: Credits) -> Self {
        let packages = stripe.packages.iter();
        let packages = packages.map(|package| PackageView::of(package, task_price));
        Self {
            packages: packages.collect(),
            is_test: !stripe.is_live,
        }
    }
}

impl PackageView {
    fn of(package: &Package, task_price: Credits) -> Self {
        let tasks = package.credits.thousandths() / task_price.thousandths().max(1);
        let each = (tasks > 0).then(|| (package.price + tasks - 1) / tasks.max(1));
        Self {
            name: package.name.clone(),
            credits: grouped(package.credits),
            tasks: grouped(tasks),
            each: each.map(|each| package.currency.show(each)),
            price: package.currency.show(package.price),
        }
    }
}

/// What the way back says, held against what the store knows. Another account's checkout does not exist.
pub(crate) async fn find_checkout(
    state: &ConsoleState,
    who: &SignedIn,
    back: &WayBack,
) -> Result<Option<CheckoutView>, ConsoleError> {
    let id = CheckoutId::parse(&back.order).or_else(|| CheckoutId::parse(&back.left));
    let Some(id) = id else {
        return Ok(None);
    };
    let account = &who.session.user.account_id;
    let found = state
        .api
        .store
        .payments()
        .find_checkout(account, &id)
        .await?;
    Ok(found.map(|(checkout, payment)| match payment {
        Some(_) => CheckoutView::Credited(grouped(checkout.package.credits)),
        None if back.order.is_empty() => CheckoutView::Left,
        None => CheckoutView::Waiting(id.as_str().to_owned()),
    }))
}
