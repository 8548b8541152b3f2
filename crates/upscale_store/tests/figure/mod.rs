//! The figures that docs/reliability.md promises, each on a line that `checks/figures.sh` collects into one table.

/// What was tried, what it had to reach, what it reached, and how often it was tried. Printed, never asserted: what must
/// hold is asserted by the test itself, and times are a machine's.
pub fn print_figure(what: &str, goal: &str, found: &str, tries: &str) {
    println!("FIGURE | {what} | {goal} | {found} | {tries} |");
}

/// "n, 95 % bound b %": nothing was seen in n tries, so with 95 % confidence it happens in less than 3 of n.
pub fn tries_and_bound(tries: usize, of_what: &str) -> String {
    assert!(tries > 0, "a run without {of_what} shows nothing");
    let bound = (300.0 / tries as f64).min(100.0);
    format!("{tries} {of_what}, 95 % bound {bound:.2} %")
}
