//! The line to the database cut within the commit of a create, half of the times before the server hears it and half after:
//! the customer is told that the outcome is unknown, and the same key finds it out.

use std::{thread, time::Duration};

use super::fleet::Fleet;
use crate::harness::client::{Answer, Client, order};

/// Creates tried until both halves were seen; some cuts meet the commit of a maintenance task instead.
const TRIES: usize = 200;
/// Each may send 60 creates a minute.
const CUSTOMERS: usize = 6;

#[test]
fn a_create_whose_commit_is_cut_is_504_and_the_same_key_finds_out_what_became_of_it() {
    let Some(mut fleet) = Fleet::prepare(&[]) else {
        return;
    };
    fleet.start_api();
    fleet.start_worker(1, &[]);
    let order = order(&fleet.world.picture("/tiny.png", 16, 12), 2);
    let customers: Vec<Client> = (0..CUSTOMERS)
        .map(|_| fleet.world.customer("100"))
        .collect();
    let (mut done, mut undone) = (0, 0);
    for (n, customer) in (0..TRIES).zip(customers.iter().cycle()) {
        let key = format!("cut-within-commit-{n:04}");
        fleet.cutter.cut_commits(1);
        let answer = customer.create(&key, &order);
        fleet.cutter.cut_commits(0);
        if answer.status == 504 {
            let answer = answer.expect(504, "upstream_timeout");
            assert_eq!(answer.header("retry-after"), "1");
            assert!(
                answer.json()["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains("unknown")
            );
            let was_replayed = until_accepted(customer, &key, &order)
                .find_header("idempotent-replayed")
                .is_some();
            *if was_replayed { &mut done } else { &mut undone } += 1;
        } else if answer.status != 202 {
            // What was cut was another's, or the window is full; the judge holds a 503 to its word.
            until_accepted(customer, &key, &order);
        }
        if done > 0 && undone > 0 {
            break;
        }
    }
    fleet.stop();
    fleet.world.finish();
    println!("cut within the commit of a create: {done} were committed, {undone} were not");
    assert!(done > 0 && undone > 0, "{done} committed, {undone} not");
}

fn until_accepted(customer: &Client, key: &str, order: &serde_json::Value) -> Answer {
    for _ in 0..600 {
        let answer = customer.create(key, order);
        match answer.status {
            202 => return answer,
            429 | 503 | 504 => thread::sleep(Duration::from_millis(200)),
            _ => panic!("{answer:?}"),
        }
    }
    panic!("{key} was never accepted");
}
