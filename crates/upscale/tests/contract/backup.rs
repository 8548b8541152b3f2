//! A backup is taken while customers order, and a service that is started on the copy goes on where it was taken.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use crate::harness::{
    World,
    client::{Client, order},
    operator::Operator,
    serve::{Serve, upscale, wait_for},
};

/// Enough that the copy meets some waiting, some under way and some done; every one is a child's work.
const ORDERS_MAX: usize = 12;

/// Orders until told to stop; ids in their order.
fn keep_ordering(customer: &Client, url: &str, over: &AtomicBool) -> Vec<String> {
    let mut ids = Vec::new();
    while !over.load(Ordering::Relaxed) && ids.len() < ORDERS_MAX {
        let key = format!("under-load-{}", ids.len());
        let answer = customer.create(&key, &order(url, 2));
        match answer.status {
            202 => ids.push(answer.id()),
            429 => thread::sleep(Duration::from_millis(100)),
            _ => panic!("{answer:?}"),
        }
        thread::sleep(Duration::from_millis(10));
    }
    ids
}

#[test]
fn a_backup_under_load_is_whole_and_can_be_served() {
    let world = World::start_with(&["--workers", "1"]);
    let customer = world.customer("100");
    let url = world.picture("/small.png", 8, 6);
    let out = world.path("backup");
    let over = AtomicBool::new(false);
    let (before, all) = thread::scope(|scope| {
        let ordering = scope.spawn(|| keep_ordering(&customer, &url, &over));
        wait_for("two downloads", || world.host.hits("/small.png") >= 2);
        let before = world.operator.transfers(&customer.account);
        let reported = world
            .operator
            .run(&["backup", out.to_str().unwrap(), "--results"]);
        assert_eq!(reported["breaches"], 0, "{reported}");
        over.store(true, Ordering::Relaxed);
        (before, ordering.join().unwrap())
    });
    let again = world.operator.output(&["backup", out.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(1), "a backup is not written over");

    let restored = Operator::new(out.clone(), Vec::new());
    assert_eq!(restored.audit_breaches(), Vec::<String>::new());
    let kept: HashSet<_> = restored.transfers(&customer.account).into_iter().collect();
    assert!(
        before.iter().all(|line| kept.contains(line)),
        "what was there is there"
    );
    let in_copy: HashSet<String> = kept.into_iter().map(|(_, task)| task).collect();
    let log = world.path("restored.log");
    let mut flags = world.host.flags();
    flags.extend(["--workers".to_owned(), "1".to_owned()]);
    let serve = Serve::start_as(upscale(), &out, &flags, &log);
    // Seen by a recorder of its own: what the copy has not done yet is no step back.
    let base = Arc::new(Mutex::new(serve.api.clone()));
    let elsewhere = Client::new(&customer.account, &customer.key, base, Arc::default());
    let known: Vec<&String> = all.iter().filter(|id| in_copy.contains(*id)).collect();
    assert!(!known.is_empty(), "tasks were ordered before the copy");
    for id in known {
        assert_eq!(elsewhere.wait(id).json()["status"], "succeeded");
    }
    assert_eq!(serve.stop().code(), Some(0));
    assert_eq!(restored.audit_breaches(), Vec::<String>::new());
}
