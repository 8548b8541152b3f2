//! Credits as the operator sees them: bought once, reserved at acceptance, charged on success, returned on failure.

use serde_json::json;

use crate::harness::{World, client::order, image_host::Behaviour, pictures::Picture};

#[test]
fn credits_are_reserved_then_charged_and_a_failure_returns_them() {
    let world = World::start();
    let customer = world.customer("10");
    let money = || world.operator.money(&customer.account);
    let bytes = Picture::render(8, 8, 2).png();
    let held = world.serve_so("/held.png", Behaviour::Held(bytes), (8, 8));
    let bad = world.host.set("/gone.png", Behaviour::Status(403));
    assert_eq!(money(), (10_000, 0, 0));

    let task = customer
        .create("first-key", &order(&held, 4))
        .expect(202, "");
    assert_eq!(money(), (9_300, 700, 0));
    world.host.open_gate();
    customer.wait(&task.id());
    assert_eq!(money(), (9_300, 0, 700));

    customer.fail("second-key", &order(&bad, 4));
    assert_eq!(money(), (9_300, 0, 700));
}

#[test]
fn a_payment_is_credited_once_however_often_it_is_reported() {
    let world = World::start();
    let account = world.operator.create_account("Ann");
    let shown = world.operator.show(&account);
    assert_eq!(shown["account"], account);
    assert_eq!(
        (&shown["available"], &shown["activated"]),
        (&json!(0), &json!(false))
    );

    for _ in 0..3 {
        world.operator.credit(&account, "12.5", "invoice 7");
    }
    world.operator.credit(&account, "0.1", "invoice 8");
    let shown = world.operator.show(&account);
    assert_eq!(
        (&shown["available"], &shown["activated"]),
        (&json!(12.6), &json!(true))
    );
    assert_eq!(
        (&shown["reserved"], &shown["charged"]),
        (&json!(0), &json!(0))
    );
}

#[test]
fn a_reference_of_another_payment_an_unknown_account_and_bad_amounts_are_refused() {
    let world = World::start();
    let (ann, bob) = (
        world.operator.create_account("Ann"),
        world.operator.create_account("Bob"),
    );
    world.operator.credit(&ann, "5", "invoice 7");
    let nobody = upscale_core::AccountId::random().unwrap();
    for (account, credits, reference) in [
        (ann.as_str(), "6", "invoice 7"),
        (&bob, "5", "invoice 7"),
        (nobody.as_str(), "5", "invoice 9"),
        (&ann, "0", "invoice 10"),
        (&ann, "-5", "invoice 11"),
        (&ann, "0.0001", "invoice 12"),
        (&ann, "many", "invoice 13"),
    ] {
        let output = world.operator.output(&[
            "account",
            "credit",
            account,
            credits,
            "--reference",
            reference,
        ]);
        assert!(!output.status.success(), "{account} {credits} {reference}");
        assert!(!output.stderr.is_empty(), "a refusal gives its reason");
    }
    assert_eq!(world.operator.money(&ann), (5_000, 0, 0));
    assert_eq!(world.operator.money(&bob), (0, 0, 0));
    let unknown = world.operator.output(&["account", "show", nobody.as_str()]);
    assert!(!unknown.status.success());
}
