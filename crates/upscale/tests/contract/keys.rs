//! API keys from making to revoking: what each may do, and how soon a change counts.

use std::{thread, time::Duration};

use serde_json::Value;
use upscale_core::ApiKey;

use crate::harness::{World, client::order};

/// A change at the command line counts within this, for every process of the service.
const EFFECTIVE_WITHIN: Duration = Duration::from_secs(1);

#[test]
fn a_key_may_do_what_its_permission_says() {
    let world = World::start();
    let owner = world.customer("5");
    let order = order(&world.picture("/small.png", 8, 8), 2);
    let key = |permission| {
        world
            .operator
            .create_key(&owner.account, Some(permission))
            .key
    };
    let (reader, writer, all) = (
        owner.with_key(&key("read")),
        owner.with_key(&key("write")),
        owner.with_key(&key("all")),
    );

    let id = writer.create("writers-key", &order).expect(202, "").id();
    writer.read(&id).expect(403, "insufficient_permissions");
    reader.read(&id).expect(200, "");
    let refused = reader
        .create_raw(&[], b"{")
        .expect(403, "insufficient_permissions");
    assert_eq!(
        refused.find_header("x-ratelimit-limit"),
        None,
        "it does not count"
    );
    all.create("everyones-key", &order).expect(202, "");
    all.read(&id).expect(200, "");
    let output = world
        .operator
        .output(&["key", "create", &owner.account, "--permission", "admin"]);
    assert!(!output.status.success(), "there is no such permission");
}

#[test]
fn a_revoked_key_is_refused_within_a_second_and_its_tasks_stay_with_the_account() {
    let world = World::start();
    let owner = world.customer("1");
    let second = world.operator.create_key(&owner.account, None);
    let order = order(&world.picture("/small.png", 8, 8), 2);
    let colleague = owner.with_key(&second.key);
    let id = colleague.upscale("colleagues-key", &order).id();

    world.operator.run(&["key", "revoke", &second.id]);
    thread::sleep(EFFECTIVE_WITHIN);
    colleague.read(&id).expect(401, "invalid_api_key");
    colleague
        .create("colleagues-key", &order)
        .expect(401, "invalid_api_key");
    owner.read(&id).expect(200, "");
    world.operator.run(&["key", "revoke", &second.id]);
}

#[test]
fn a_rotated_key_is_replaced_by_one_that_may_do_the_same() {
    let world = World::start();
    let owner = world.customer("1");
    let old = world.operator.create_key(&owner.account, Some("read"));
    let new = world.operator.rotate_key(&old.id);
    assert_ne!((&new.id, &new.key), (&old.id, &old.key));
    thread::sleep(EFFECTIVE_WITHIN);
    owner
        .with_key(&old.key)
        .read("ups_x")
        .expect(401, "invalid_api_key");
    let successor = owner.with_key(&new.key);
    successor.read("ups_x").expect(404, "task_not_found");
    successor
        .create_raw(&[], b"{")
        .expect(403, "insufficient_permissions");
}

#[test]
fn a_list_of_keys_names_them_all_and_shows_none() {
    let world = World::start();
    let owner = world.visitor();
    let second = world.operator.create_key(&owner.account, Some("read"));
    world.operator.run(&["key", "revoke", &second.id]);
    let list = world.operator.run(&["key", "list", &owner.account]);
    let text = list.to_string();
    assert!(
        ApiKey::parse(&second.key).is_some(),
        "a key has the form that scanners look for"
    );
    assert!(
        !text.contains(&second.key) && !text.contains(&owner.key),
        "a key is shown once"
    );
    let keys = list.as_array().or_else(|| list["keys"].as_array()).unwrap();
    assert_eq!(keys.len(), 2, "{text}");
    let find = |id: &str| keys.iter().find(|key| key["id"] == id).unwrap();
    assert_eq!(find(&second.id)["permission"], "read");
    let revoked = keys
        .iter()
        .filter(|key| !matches!(key["revoked_at"], Value::Null))
        .count();
    assert_eq!(revoked, 1, "{text}");
}

#[test]
fn keys_and_accounts_that_are_not_there_are_refused_with_a_reason() {
    let world = World::start();
    let key = upscale_core::KeyId::random().unwrap();
    let account = upscale_core::AccountId::random().unwrap();
    for arguments in [
        ["key", "revoke", key.as_str()],
        ["key", "rotate", key.as_str()],
        ["key", "rotate", "no-such-form"],
        ["key", "create", account.as_str()],
        ["key", "list", account.as_str()],
        ["account", "show", "no-such-form"],
    ] {
        let output = world.operator.output(&arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}
