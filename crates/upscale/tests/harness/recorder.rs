//! Writes down what clients see as a history, and which secrets no log may hold. Also holds what the judge cannot know:
//! how large each source is.

use std::{
    collections::HashMap,
    fs::{self, OpenOptions},
    io::Write,
    path::PathBuf,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use aho_corasick::AhoCorasick;
use serde_json::{Value, json};

use super::{client::Answer, operator::thousandths};
use crate::history::{Create, History, Micros, Outcome, Read, Seen, Span, State, Window};

/// What is known of a task that was accepted.
#[derive(Debug, Clone)]
pub struct Accepted {
    pub id: String,
    pub account: String,
    pub parameters: Parameters,
}

/// A create body after defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    pub image_url: String,
    pub scale: u32,
    pub face_enhance: bool,
}

pub struct Recorder {
    begun: Instant,
    history: Mutex<History>,
    accepted: Mutex<Vec<Accepted>>,
    sizes: Mutex<HashMap<String, (u32, u32)>>,
    secrets: Mutex<Vec<(&'static str, String)>>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            history: Mutex::default(),
            accepted: Mutex::default(),
            sizes: Mutex::default(),
            secrets: Mutex::default(),
        }
    }
}

impl Recorder {
    pub fn now(&self) -> Micros {
        self.begun.elapsed().as_micros() as Micros
    }

    pub fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap()
    }

    pub fn accepted(&self) -> Vec<Accepted> {
        self.accepted.lock().unwrap().clone()
    }

    /// A text that no log may hold, and what it is (the text itself is never printed).
    pub fn keep_secret(&self, kind: &'static str, text: &str) {
        let mut secrets = self.secrets.lock().unwrap();
        if !secrets.iter().any(|(_, known)| known == text) {
            secrets.push((kind, text.to_owned()));
        }
    }

    /// Kinds of the secrets that stand in the text, each once.
    pub fn leaks(&self, text: &str) -> Vec<&'static str> {
        let secrets = self.secrets.lock().unwrap();
        // All at once: an hour plants 50,000 of them and logs 50 MB, half an hour of searching one by one.
        let all = AhoCorasick::new(secrets.iter().map(|(_, secret)| secret)).unwrap();
        let found = all.find_overlapping_iter(text);
        let mut kinds: Vec<_> = found.map(|at| secrets[at.pattern()].0).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Where `UPSCALE_TEST_LOGS` names a directory: the logs and the secrets go there, for one search over all logs of
    /// the whole suite (`checks/leaks.sh`).
    pub fn keep_for_search(&self, logs: &str) {
        static WORLDS: AtomicUsize = AtomicUsize::new(0);
        let Some(folder) = std::env::var_os("UPSCALE_TEST_LOGS").map(PathBuf::from) else {
            return;
        };
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let name = format!("serve-{}-{number}.log", std::process::id());
        fs::write(folder.join(name), logs).unwrap();
        let secrets = self.secrets.lock().unwrap();
        let lines = secrets
            .iter()
            .map(|(kind, secret)| format!("{kind}\t{secret}\n"));
        let lines: String = lines.collect();
        // One write: other tests append at the same time.
        let planted = OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.join("planted.tsv"));
        let mut planted = planted.unwrap();
        planted.write_all(lines.as_bytes()).unwrap();
    }

    pub fn set_size(&self, url: &str, size: (u32, u32)) {
        self.sizes
            .lock()
            .unwrap()
            .insert(without_query(url).to_owned(), size);
    }

    /// Width and height that a result of these parameters must have; none for sources that are no pictures.
    pub fn expected_size(&self, parameters: &Parameters) -> Option<(u32, u32)> {
        let sizes = self.sizes.lock().unwrap();
        let (width, height) = *sizes.get(without_query(&parameters.image_url))?;
        Some((width * parameters.scale, height * parameters.scale))
    }

    pub fn record_create(
        &self,
        started: Micros,
        account: &str,
        key: &str,
        body: &[u8],
        answer: Option<&Answer>,
    ) {
        let span = Span {
            started,
            answered: self.now(),
        };
        let parameters = Parameters::of(body);
        let outcome = outcome(answer, 202);
        if let (Outcome::Task(seen), Some(parameters)) = (&outcome, &parameters) {
            self.record_accepted(&seen.id, account, parameters);
        }
        self.history().creates.push(Create {
            span,
            account: account.to_owned(),
            key: key.to_owned(),
            parameters: format!("{parameters:?}"),
            outcome,
            window: answer.and_then(window),
            replayed: answer
                .is_some_and(|answer| answer.find_header("idempotent-replayed") == Some("true")),
        });
    }

    /// A task that was ordered in the console, as if the API had answered its create.
    pub fn record_ordered(
        &self,
        started: Micros,
        account: &str,
        key: &str,
        order: &Value,
        id: &str,
    ) {
        let usage = json!({ "credits_reserved": 0.7, "credits_charged": 0 });
        let body = json!({ "id": id, "status": "processing", "usage": usage });
        let answer = Answer {
            status: 202,
            headers: Vec::new(),
            body: body.to_string().into_bytes(),
        };
        let order = order.to_string();
        self.record_create(started, account, key, order.as_bytes(), Some(&answer));
    }

    fn record_accepted(&self, id: &str, account: &str, parameters: &Parameters) {
        let mut accepted = self.accepted.lock().unwrap();
        if !accepted.iter().any(|known| known.id == id) {
            let (id, account) = (id.to_owned(), account.to_owned());
            accepted.push(Accepted {
                id,
                account,
                parameters: parameters.clone(),
            });
        }
    }

    pub fn record_read(&self, started: Micros, account: &str, id: &str, answer: Option<&Answer>) {
        let span = Span {
            started,
            answered: self.now(),
        };
        if let Some(url) =
            answer.and_then(|answer| answer.json()["result"]["url"].as_str().map(str::to_owned))
        {
            let query = url.split_once('?').map(|(_, query)| query).unwrap_or(&url);
            self.keep_secret("signature of a result URL", query);
        }
        let (account, id) = (account.to_owned(), id.to_owned());
        self.history().reads.push(Read {
            span,
            account,
            id,
            outcome: outcome(answer, 200),
        });
    }
}

impl Parameters {
    /// None for a body that no task can come of.
    pub fn of(body: &[u8]) -> Option<Self> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let scale = body.get("scale").map_or(Some(2.0), Value::as_f64)?;
        Some(Self {
            image_url: body["image_url"].as_str()?.to_owned(),
            scale: scale as u32,
            face_enhance: body
                .get("face_enhance")
                .map_or(Some(false), Value::as_bool)?,
        })
    }
}

fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or(url)
}

fn outcome(answer: Option<&Answer>, success: u16) -> Outcome {
    match answer {
        None => Outcome::Lost,
        Some(answer) if answer.status == success => Outcome::Task(seen(&answer.json())),
        Some(answer) => Outcome::Refused {
            status: answer.status,
            code: answer.code(),
        },
    }
}

/// A task body as the judge sees it; anything the contract has no words for is a fault at once.
pub fn seen(body: &Value) -> Seen {
    let usage = &body["usage"];
    let state = match (body["status"].as_str(), usage["refund_status"].as_str()) {
        (Some("processing"), None) => State::Processing,
        (Some("succeeded"), None) => State::Succeeded,
        (Some("failed"), Some("pending")) => State::FailedRefundPending,
        (Some("failed"), Some("refunded")) => State::FailedRefunded,
        _ => panic!("no state of the contract: {body}"),
    };
    Seen {
        id: body["id"]
            .as_str()
            .unwrap_or_else(|| panic!("a task has an id: {body}"))
            .to_owned(),
        state,
        reserved: usage.get("credits_reserved").map_or(0, thousandths),
        charged: thousandths(&usage["credits_charged"]),
    }
}

fn window(answer: &Answer) -> Option<Window> {
    let number = |name: &str| answer.find_header(name)?.parse::<i64>().ok();
    Some(Window {
        limit: number("x-ratelimit-limit")? as u32,
        remaining: number("x-ratelimit-remaining")? as u32,
        reset: number("x-ratelimit-reset")?,
    })
}

#[test]
fn a_secret_in_a_log_is_found_by_its_kind() {
    let recorder = Recorder::default();
    recorder.keep_secret("API key", "usk_live_planted");
    recorder.keep_secret("Idempotency-Key", "planted-key");
    assert_eq!(recorder.leaks("all is well"), Vec::<&str>::new());
    assert_eq!(
        recorder.leaks("{\"key\":\"planted-key\"}"),
        ["Idempotency-Key"]
    );
    assert_eq!(recorder.leaks("usk_live_planted planted-key").len(), 2);
}
