//! Customers who go on whatever happens: new orders, replays, mistakes, reads of their own tasks and of others'. A
//! create whose answer is lost is sent again, as the contract tells them to.

use std::{
    env,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use upscale_core::random_bytes;

use super::dice::Dice;
use crate::harness::{
    World,
    client::{Answer, Client, order},
    image_host::Behaviour,
};

/// How long one create is sent again before the run is given up: more than any restart takes.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// Customers; each may send 60 creates a minute.
const BUYERS: usize = 6;
/// Paths of what they order.
pub(crate) const SOURCES: [&str; 5] = [
    "/tiny.png",
    "/tiny.jpg",
    "/tiny.webp",
    "/larger.png",
    "/gone.png",
];

/// How often, unless the variable asks for another number, and chance from a seed that is printed, so that a run can be
/// had again.
pub(crate) fn rounds_and_dice(variable: &str, rounds: u64) -> (u64, Dice) {
    let rounds = number_from(variable).unwrap_or(rounds);
    let seed = number_from("UPSCALE_CHAOS_SEED");
    let seed = seed.unwrap_or_else(|| u64::from_le_bytes(random_bytes().unwrap()));
    println!("UPSCALE_CHAOS_SEED={seed} {variable}={rounds}");
    (rounds, Dice::new(seed))
}

/// Whether the long form was asked for.
pub(crate) fn is_long(variable: &str) -> bool {
    env::var_os(variable).is_some()
}

/// The customers go on for as long as the deeds take.
pub(crate) fn under_load<T>(buyers: Vec<Buyer>, deeds: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for buyer in buyers {
            scope.spawn(|| buyer.buy(&over));
        }
        let _over = Over(&over);
        deeds()
    })
}

/// Sends the customers home, also when a deed fails: a test that waits for them would never end.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn number_from(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number: {text}")),
    )
}

/// Six customers, each with a neighbour whose tasks are none of his business.
pub(crate) fn buyers(world: &World, dice: &mut Dice) -> Vec<Buyer> {
    let [tiny_png, tiny_jpg, tiny_webp, larger, gone] = SOURCES;
    let sources = vec![
        world.picture(tiny_png, 16, 12),
        world.picture(tiny_jpg, 20, 9),
        world.picture(tiny_webp, 7, 15),
        // Long enough under way for a kill to meet it there.
        world.picture(larger, 240, 180),
        world.host.set(gone, Behaviour::Status(404)),
    ];
    let customers: Vec<Client> = (0..BUYERS).map(|_| world.customer("2000")).collect();
    let with_neighbours = customers.iter().zip(customers.iter().cycle().skip(1));
    let buyer = |(customer, foreign_caller): (&Client, &Client)| {
        Buyer::new(
            customer.clone(),
            foreign_caller.clone(),
            sources.clone(),
            dice.split(),
        )
    };
    with_neighbours.map(buyer).collect()
}

/// One customer's share of the load.
pub(crate) struct Buyer {
    pub(crate) customer: Client,
    pub(crate) foreign_caller: Client,
    pub(crate) sources: Vec<String>,
    pub(crate) dice: Dice,
    /// Keys already accepted, each with its body and its task.
    known: Vec<(String, Value, String)>,
    /// No creates before this: the service asked to wait.
    quiet_until: Instant,
}

impl Buyer {
    pub(crate) fn new(
        customer: Client,
        foreign_caller: Client,
        sources: Vec<String>,
        dice: Dice,
    ) -> Self {
        let quiet_until = Instant::now();
        Self {
            customer,
            foreign_caller,
            sources,
            dice,
            known: Vec::new(),
            quiet_until,
        }
    }

    /// Goes on until told to stop.
    fn buy(mut self, over: &AtomicBool) {
        while !over.load(Ordering::Relaxed) {
            self.act();
            thread::sleep(Duration::from_millis(self.dice.between(20, 400)));
        }
    }

    fn act(&mut self) {
        let may_create = Instant::now() >= self.quiet_until;
        match self.dice.below(10) {
            0..=4 if may_create => self.order_anew(),
            5 | 6 if may_create && !self.known.is_empty() => self.replay(),
            7 if may_create && !self.known.is_empty() => self.mistake(),
            8 if !self.known.is_empty() => {
                let (_, _, id) = self.dice.choose(&self.known).clone();
                drop(self.foreign_caller.try_read(&id));
            }
            _ if !self.known.is_empty() => {
                let (_, _, id) = self.dice.choose(&self.known).clone();
                drop(self.customer.try_read(&id));
            }
            _ => {}
        }
    }

    fn order_anew(&mut self) {
        let scale = *self.dice.choose(&[2, 4]);
        let body = order(self.dice.choose::<String>(&self.sources), scale);
        let key = format!("chaos-key-{}-{}", self.customer.account, self.known.len());
        // The same key again after a refusal: only acceptance uses it up.
        let answer = self.create(&key, &body);
        if answer.status == 202 {
            self.known.push((key, body, answer.id()));
        }
    }

    fn replay(&mut self) {
        let (key, body, id) = self.dice.choose(&self.known).clone();
        let answer = self.create(&key, &body);
        if answer.status == 202 {
            assert_eq!(answer.id(), id);
        }
    }

    /// A key with another order: a conflict if anything.
    fn mistake(&mut self) {
        let (key, body, _) = self.dice.choose(&self.known).clone();
        let scale = 6 - body["scale"].as_u64().unwrap() as u32;
        let other = order(body["image_url"].as_str().unwrap(), scale);
        let answer = self.create(&key, &other);
        assert!(matches!(answer.status, 409 | 429), "{answer:?}");
    }

    /// Until there is an answer that settles what became of it.
    fn create(&mut self, key: &str, body: &Value) -> Answer {
        let begun = Instant::now();
        let mut was_unknown = false;
        loop {
            let answer = self.customer.try_create(key, body);
            let pause = match answer {
                // A 504 may be a lost one too: it says that the outcome is not known.
                Some(answer) if matches!(answer.status, 503 | 504) => {
                    was_unknown = true;
                    retry_after(&answer)
                }
                // Refused for now; but if an earlier one was lost, its fate must still be learnt.
                Some(answer) if answer.status == 429 => {
                    self.quiet_until = Instant::now() + retry_after(&answer);
                    if !was_unknown {
                        return answer;
                    }
                    retry_after(&answer)
                }
                Some(answer) => return answer,
                None => {
                    was_unknown = true;
                    Duration::from_millis(100)
                }
            };
            assert!(
                begun.elapsed() < WAIT_MAX,
                "{key} was not answered for {WAIT_MAX:?}"
            );
            thread::sleep(pause);
        }
    }
}

fn retry_after(answer: &Answer) -> Duration {
    let seconds = answer
        .find_header("retry-after")
        .and_then(|value| value.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}
