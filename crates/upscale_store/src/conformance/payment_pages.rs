//! Payments as their account looks back on them: an order and what came of it, and all of them a page at a time.

use upscale_core::AccountId;

use super::{
    payments::{order_of, ordered, paid, send},
    setting::{Setting, on_every_engine},
};
use crate::{PaidSession, PaymentCursor, PaymentFilter, PaymentNews};

#[tokio::test]
async fn an_order_is_found_by_its_account_alone_and_payments_page_by_page() {
    on_every_engine(async |at: &Setting| {
        let checkout = ordered(at).await;
        let account = &checkout.account_id;
        let find = async |account: &AccountId| {
            let found = at
                .store
                .payments()
                .find_checkout(account, &checkout.id)
                .await;
            found.unwrap()
        };
        assert_eq!(find(account).await, Some((checkout.clone(), None)));
        assert_eq!(find(&AccountId::random().unwrap()).await, None);
        send(at, "evt_0", PaymentNews::Paid(paid(&checkout))).await;
        let (_, payment) = find(account).await.unwrap();
        let payment = payment.unwrap();
        assert_eq!((payment.id.as_str(), payment.in_dispute), ("pi_1", false));

        // Some of the same moment, some not.
        for number in 2..12 {
            if number % 3 == 0 {
                at.clock.advance_seconds(1);
            }
            let session = PaidSession {
                payment: format!("pi_{number}"),
                ..paid(&order_of(at, account).await)
            };
            send(at, &format!("evt_{number}"), PaymentNews::Paid(session)).await;
        }
        let filter = PaymentFilter::OfAccount(*account);
        let all = at.store.payments().list(&filter, 100).await.unwrap();
        assert_eq!(all.len(), 11);
        let (mut paged, mut after) = (Vec::new(), None);
        loop {
            let page = at.store.payments().list_after(&filter, after.as_ref(), 3);
            let page = page.await.unwrap();
            let Some(last) = page.last() else {
                break;
            };
            after = Some(PaymentCursor {
                first_at: last.first_at,
                id: last.id.clone(),
            });
            paged.extend(page);
        }
        assert_eq!(paged, all);
    })
    .await;
}
