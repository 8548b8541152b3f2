//! What every engine must do: each test is one rule, run on a fresh store of every engine, and the books
//! are audited after it. Beside the rules: a fault at
//! every statement and commit, several processes at once, and a model that lives through the same random days. An engine joins in `home.rs`.

mod admission;
mod books;
mod clock_steps;
mod create;
mod crowd;
pub(crate) mod earlier_rows;
mod ending;
#[path = "../../tests/figure/mod.rs"]
#[allow(
    unreachable_pub,
    dead_code,
    clippy::print_stdout,
    reason = "shared with other crates' tests, which measure"
)]
mod figure;
mod history;
pub(crate) mod home;
mod interruptions;
mod keys;
mod leaving;
mod limits;
mod many_keys;
mod model;
mod nth_fault;
mod operator;
mod operators_console;
mod payment_pages;
mod payments;
mod price;
mod properties;
mod purchases;
mod queue;
mod retention;
mod sealed_secrets;
mod sessions;
pub(crate) mod setting;
mod several_processes;
mod steps;
mod upgrades;
mod users;
mod whose_address;
