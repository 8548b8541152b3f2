//! Payments: whatever the order, number and timing of the service's events, the credits are those of what was ordered
//! and is still paid, once; and a crash at any statement leaves an event wholly processed or not at all.

use futures_util::future::join_all;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use upscale_core::{AccountId, CheckoutId, Credits, Currency, Package, limits};

use super::{
    home::faults,
    setting::{Setting, on_every_engine},
};
use crate::{
    Checkout, CheckoutOutcome, DisputeStep, PaidSession, PaymentEvent, PaymentFilter, PaymentNews,
    PaymentOutcome, PaymentRecord, PaymentState, PurchaseOutcome, StoreError,
};

const HUNDRED: Credits = Credits::from_thousandths(100_000);

fn package() -> Package {
    Package {
        name: "hundred".to_owned(),
        credits: HUNDRED,
        price: 1_000,
        currency: Currency::parse("usd").unwrap(),
    }
}

pub(super) async fn ordered(at: &Setting) -> Checkout {
    let account = at.store.accounts().create("A buyer").await.unwrap().id;
    order_of(at, &account).await
}

pub(super) async fn order_of(at: &Setting, account: &AccountId) -> Checkout {
    match at
        .store
        .payments()
        .open_checkout(account, &package())
        .await
        .unwrap()
    {
        CheckoutOutcome::Opened(checkout) => checkout,
        other => panic!("{other:?}"),
    }
}

pub(super) fn paid(checkout: &Checkout) -> PaidSession {
    PaidSession {
        payment: "pi_1".to_owned(),
        checkout: checkout.id,
        account: checkout.account_id.to_string(),
        price: 1_000,
        currency: Currency::parse("usd").unwrap(),
        invoice: Some("in_1".to_owned()),
    }
}

fn event(id: &str, news: PaymentNews) -> PaymentEvent {
    PaymentEvent {
        id: id.to_owned(),
        kind: "a kind".to_owned(),
        news,
    }
}

fn charge_returned(returned: i64) -> PaymentNews {
    PaymentNews::ChargeReturned {
        payment: "pi_1".to_owned(),
        returned,
    }
}

fn refund(id: &str, amount: i64, failed: bool) -> PaymentNews {
    PaymentNews::Refund {
        payment: "pi_1".to_owned(),
        refund: id.to_owned(),
        amount,
        failed,
    }
}

fn dispute(step: DisputeStep) -> PaymentNews {
    PaymentNews::Dispute {
        payment: "pi_1".to_owned(),
        dispute: "dp_1".to_owned(),
        amount: 1_000,
        step,
    }
}

pub(super) async fn send(at: &Setting, id: &str, news: PaymentNews) -> PaymentOutcome {
    at.store
        .payments()
        .record_event(&event(id, news))
        .await
        .unwrap()
}

async fn assert_noted(at: &Setting, id: &str, news: PaymentNews) {
    assert_eq!(send(at, id, news).await, PaymentOutcome::Noted);
}

async fn listed(at: &Setting, filter: PaymentFilter) -> Vec<PaymentRecord> {
    at.store.payments().list(&filter, 10).await.unwrap()
}

async fn available(at: &Setting, account: &AccountId) -> i64 {
    at.account(account).await.available.thousandths()
}

#[tokio::test]
async fn a_paid_order_is_credited_by_its_package_and_opens_access() {
    on_every_engine(async |at: &Setting| {
        let checkout = ordered(at).await;
        let account = &checkout.account_id;
        let received = send(at, "evt_1", PaymentNews::Paid(paid(&checkout))).await;
        assert_eq!(received, PaymentOutcome::Credited(*account, HUNDRED));
        let standing = at.account(account).await;
        assert_eq!(standing.available, HUNDRED);
        assert_eq!(standing.activated_at, Some(at.store.now()));
        let line = &at.store.accounts().list_ledger(account, 10).await.unwrap()[0];
        assert_eq!(line.kind, crate::LedgerKind::Purchase);
        assert_eq!(line.external_reference.as_deref(), Some("pi_1"));
        let listed = listed(at, PaymentFilter::OfAccount(*account)).await;
        let payment = &listed[0];
        assert_eq!(
            (&payment.state, payment.package.as_deref()),
            (&PaymentState::Credited, Some("hundred"))
        );
        assert_eq!(
            payment.price,
            Some((1_000, Currency::parse("usd").unwrap()))
        );
        assert_eq!(
            (payment.credits, payment.invoice.as_deref()),
            (Some(HUNDRED), Some("in_1"))
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_or_payment_received_many_times_at_once_is_credited_once() {
    on_every_engine(async |at: &Setting| {
        let checkout = ordered(at).await;
        let news = PaymentNews::Paid(paid(&checkout));
        // Each event comes twice, and four events tell of the same payment.
        let events: Vec<_> = (0..8)
            .map(|n| event(&format!("evt_{}", n / 2), news.clone()))
            .collect();
        let received = join_all(
            events
                .iter()
                .map(|event| at.store.payments().record_event(event)),
        )
        .await;
        let received: Vec<_> = received.into_iter().map(Result::unwrap).collect();
        let count = |wanted: &dyn Fn(&PaymentOutcome) -> bool| {
            received.iter().filter(|one| wanted(one)).count()
        };
        assert_eq!(count(&|one| matches!(one, PaymentOutcome::Credited(..))), 1);
        assert_eq!(count(&|one| *one == PaymentOutcome::Noted), 3);
        assert_eq!(count(&|one| *one == PaymentOutcome::Repeated), 4);
        assert_eq!(at.account(&checkout.account_id).await.available, HUNDRED);
    })
    .await;
}

#[tokio::test]
async fn what_does_not_fit_its_order_credits_no_one_and_waits_for_an_operator() {
    on_every_engine(async |at: &Setting| {
        let checkout = ordered(at).await;
        let other = at.store.accounts().create("Someone else").await.unwrap().id;
        let right = paid(&checkout);
        let wrong = [
            PaidSession { price: 999, ..right.clone() },
            PaidSession { price: 100_000, ..right.clone() },
            PaidSession { currency: Currency::parse("eur").unwrap(), ..right.clone() },
            PaidSession { account: other.to_string(), ..right.clone() },
            PaidSession { checkout: CheckoutId::random().unwrap(), ..right.clone() },
        ];
        for (n, session) in wrong.into_iter().enumerate() {
            let received = send(at, &format!("evt_{n}"), PaymentNews::Paid(session)).await;
            assert!(matches!(received, PaymentOutcome::Refused(_)), "{received:?}");
        }
        for account in [&checkout.account_id, &other] {
            assert_eq!(available(at, account).await, 0);
        }
        let waiting = listed(at, PaymentFilter::Refused).await;
        assert_eq!(waiting.len(), 1);
        assert!(matches!(&waiting[0].state, PaymentState::Refused(why) if why.contains("there is no order")));
        // The operator credits it by hand under its own id; told again, it is not credited twice.
        let by_hand = at.store.accounts().credit(&checkout.account_id, HUNDRED, "pi_1").await.unwrap();
        assert_eq!(by_hand, PurchaseOutcome::Credited);
        assert_noted(at, "evt_9", PaymentNews::Paid(right)).await;
        assert_eq!(available(at, &checkout.account_id).await, 100_000);
        assert_eq!(listed(at, PaymentFilter::Refused).await, []);
    })
    .await;
}

#[tokio::test]
async fn an_order_is_credited_for_one_payment() {
    on_every_engine(async |at: &Setting| {
        let checkout = ordered(at).await;
        let first = paid(&checkout);
        let second = PaidSession {
            payment: "pi_2".to_owned(),
            ..first.clone()
        };
        send(at, "evt_1", PaymentNews::Paid(first)).await;
        let received = send(at, "evt_2", PaymentNews::Paid(second)).await;
        assert_eq!(
            received,
            PaymentOutcome::Refused("the order was paid before, by pi_1".to_owned())
        );
        assert_eq!(available(at, &checkout.account_id).await, 100_000);
    })
    .await;
}

#[tokio::test]
async fn refunds_take_back_in_proportion_never_twice_and_below_zero_if_need_be() {
    on_every_engine(async |at: &Setting| {
        at.plenty_of_slots().await;
        let checkout = ordered(at).await;
        let account = &checkout.account_id;
        send(at, "evt_1", PaymentNews::Paid(paid(&checkout))).await;
        at.accepted(account, "spent").await;
        at.succeed(&at.claimed().await).await;
        let taken = |thousandths| {
            PaymentOutcome::TakenBack(*account, Credits::from_thousandths(thousandths))
        };
        assert_eq!(send(at, "evt_2", charge_returned(250)).await, taken(25_000));
        // The same quarter told by its refund, and by its charge again.
        assert_noted(at, "evt_3", refund("re_1", 250, false)).await;
        assert_noted(at, "evt_4", charge_returned(250)).await;
        assert_eq!(
            send(at, "evt_2", charge_returned(250)).await,
            PaymentOutcome::Repeated
        );
        assert_eq!(
            send(at, "evt_5", refund("re_2", 750, false)).await,
            taken(75_000)
        );
        assert_noted(at, "evt_6", charge_returned(1_000)).await;
        // 0.7 were spent.
        assert_eq!(available(at, account).await, -700);
        let refused = at.order(account, "on credit").await;
        assert!(
            matches!(refused, crate::CreateOutcome::InsufficientCredits { .. }),
            "{refused:?}"
        );
        // A task's refund and the next purchase fill the hole first.
        at.store
            .accounts()
            .credit(account, limits::PRICE, "by hand")
            .await
            .unwrap();
        assert_eq!(available(at, account).await, 0);
    })
    .await;
}

#[tokio::test]
async fn money_told_back_before_it_was_told_paid_is_taken_back_at_once() {
    on_every_engine(async |at: &Setting| {
        let checkout = ordered(at).await;
        assert_noted(at, "evt_1", charge_returned(400)).await;
        let all = listed(at, PaymentFilter::All).await;
        assert_eq!(all[0].state, PaymentState::Unknown);
        send(at, "evt_2", PaymentNews::Paid(paid(&checkout))).await;
        assert_eq!(available(at, &checkout.account_id).await, 60_000);
        let lines = at
            .store
            .accounts()
            .list_ledger(&checkout.account_id, 10)
            .await
            .unwrap();
        let kinds: Vec<_> = lines.iter().map(|line| line.kind.as_str()).collect();
        assert_eq!(kinds, ["reversal", "purchase"]);
    })
    .await;
}

#[tokio::test]
async fn a_refund_that_fails_and_a_dispute_that_is_won_give_the_credits_again() {
    on_every_engine(async |at: &Setting| {
        let checkout = ordered(at).await;
        let account = &checkout.account_id;
        send(at, "evt_1", PaymentNews::Paid(paid(&checkout))).await;
        send(at, "evt_2", refund("re_1", 500, false)).await;
        assert_eq!(available(at, account).await, 50_000);
        let fifty = Credits::from_thousandths(50_000);
        assert_eq!(
            send(at, "evt_3", refund("re_1", 500, true)).await,
            PaymentOutcome::Reinstated(*account, fifty)
        );
        // Told late, it stays failed.
        assert_noted(at, "evt_4", refund("re_1", 500, false)).await;
        send(at, "evt_5", dispute(DisputeStep::Withdrawn)).await;
        assert_eq!(available(at, account).await, 0);
        let found = at
            .store
            .payments()
            .find_checkout(account, &checkout.id)
            .await
            .unwrap();
        assert!(found.unwrap().1.unwrap().in_dispute);
        send(at, "evt_6", dispute(DisputeStep::Reinstated)).await;
        assert_eq!(available(at, account).await, 100_000);
        assert_noted(at, "evt_7", dispute(DisputeStep::Withdrawn)).await;
        let paid = listed(at, PaymentFilter::All).await;
        assert_eq!(paid[0].taken_back, Credits::ZERO);
        assert!(!paid[0].in_dispute);
    })
    .await;
}

#[tokio::test]
async fn whatever_the_order_of_events_the_end_is_the_same() {
    on_every_engine(async |at: &Setting| {
        let mut order = TestRunner::new_with_rng(
            Config::default(),
            TestRng::deterministic_rng(RngAlgorithm::ChaCha),
        );
        for round in 0..24 {
            let checkout = ordered(at).await;
            let payment = format!("pi_{round}");
            let mut news = vec![
                PaymentNews::Paid(PaidSession {
                    payment: payment.clone(),
                    ..paid(&checkout)
                }),
                charge_returned(100),
                charge_returned(300),
                refund("re_a", 100, false),
                refund("re_b", 200, false),
                refund("re_b", 200, true),
                dispute(DisputeStep::Withdrawn),
                dispute(DisputeStep::Reinstated),
            ];
            shuffle(&mut news, &mut order);
            for (n, news) in news.into_iter().enumerate() {
                let news = of_payment(news, &payment, round);
                send(at, &format!("evt_{round}_{n}"), news).await;
                at.check_books().await;
            }
            // One tenth is refunded for good.
            assert_eq!(
                available(at, &checkout.account_id).await,
                90_000,
                "round {round}"
            );
        }
    })
    .await;
}

fn shuffle<T>(list: &mut [T], runner: &mut TestRunner) {
    use proptest::prelude::Rng;
    for at in (1..list.len()).rev() {
        let other = runner.rng().next_u32() as usize % (at + 1);
        list.swap(at, other);
    }
}

fn of_payment(news: PaymentNews, to: &str, round: usize) -> PaymentNews {
    let to = to.to_owned();
    match news {
        PaymentNews::ChargeReturned { returned, .. } => PaymentNews::ChargeReturned {
            payment: to,
            returned,
        },
        PaymentNews::Refund {
            refund,
            amount,
            failed,
            ..
        } => PaymentNews::Refund {
            payment: to,
            refund: format!("{refund}{round}"),
            amount,
            failed,
        },
        PaymentNews::Dispute {
            dispute,
            amount,
            step,
            ..
        } => PaymentNews::Dispute {
            payment: to,
            dispute: format!("{dispute}{round}"),
            amount,
            step,
        },
        other => other,
    }
}

#[tokio::test]
async fn a_crash_at_any_statement_or_commit_leaves_an_event_whole_or_unheard() {
    on_every_engine(async |at: &Setting| {
        let mut struck = 0;
        for n in 1..100 {
            let checkout = ordered(at).await;
            let payment = format!("pi_{n}");
            let news = PaymentNews::Paid(PaidSession {
                payment: payment.clone(),
                ..paid(&checkout)
            });
            let back = of_payment(charge_returned(500), &payment, n);
            let faults = faults(&at.store);
            match n % 3 {
                0 => faults.fail_statement(n as u32 / 3),
                1 => faults.fail_before_commit(n as u32 / 3 + 1),
                _ => faults.fail_after_commit(n as u32 / 3 + 1),
            }
            for (id, news) in [("paid", news), ("back", back)] {
                insist(at, &event(&format!("evt_{id}_{n}"), news)).await;
            }
            struck += u32::from(!faults.is_armed());
            assert_eq!(
                available(at, &checkout.account_id).await,
                50_000,
                "fault {n}"
            );
            faults.fail_statement(0);
            faults.fail_before_commit(0);
            faults.fail_after_commit(0);
        }
        assert!(struck >= 20, "only {struck} faults struck");
    })
    .await;
}

/// As the service does: told "unavailable", it sends the event again.
async fn insist(at: &Setting, event: &PaymentEvent) {
    for _ in 0..3 {
        let received = at.store.payments().record_event(event).await;
        at.check_books().await;
        match received {
            Ok(_) => return,
            Err(StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("three times unavailable after one fault");
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_orders_an_hour_and_no_more() {
    on_every_engine(async |at: &Setting| {
        let account = at.store.accounts().create("A buyer").await.unwrap().id;
        let package = package();
        let opened =
            join_all((0..30).map(|_| at.store.payments().open_checkout(&account, &package))).await;
        let too_many = |outcome: &CheckoutOutcome| *outcome == CheckoutOutcome::TooMany;
        let refused = opened
            .iter()
            .filter(|outcome| too_many(outcome.as_ref().unwrap()))
            .count();
        assert_eq!(refused, 30 - limits::CHECKOUTS_PER_HOUR as usize);
        at.clock.advance_seconds(3_600);
        order_of(at, &account).await;
        let no_one = AccountId::random().unwrap();
        let outcome = at
            .store
            .payments()
            .open_checkout(&no_one, &package)
            .await
            .unwrap();
        assert_eq!(outcome, CheckoutOutcome::NoSuchAccount);
    })
    .await;
}

#[tokio::test]
async fn ids_that_no_reference_could_hold_are_refused() {
    on_every_engine(async |at: &Setting| {
        for (id, payment) in [
            ("", "pi_1"),
            ("evt_1", ""),
            (&"e".repeat(100), "pi_1"),
            ("evt_1", &"p".repeat(100)),
        ] {
            let news = PaymentNews::ChargeReturned {
                payment: payment.to_owned(),
                returned: 1,
            };
            let refused = at.store.payments().record_event(&event(id, news)).await;
            assert!(
                matches!(refused, Err(StoreError::Refused(_))),
                "{refused:?}"
            );
        }
    })
    .await;
}
