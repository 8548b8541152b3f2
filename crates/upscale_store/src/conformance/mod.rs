//! What every engine must do: each test is one rule, run on a fresh store of every engine, and the books
//! are audited after it. An engine joins by one more line in `setting::every_engine`.

mod admission;
mod books;
mod create;
mod ending;
mod keys;
mod limits;
mod purchases;
mod queue;
mod retention;
pub(crate) mod setting;
