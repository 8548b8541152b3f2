//! A name server of a few lines: answers A and AAAA queries from a table that tests fill, and remembers
//! what it was asked. Message format: RFC 1035, section 4.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex},
};

use tokio::net::UdpSocket;

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const HEADER_BYTES: usize = 12;

/// What a name leads to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Records {
    /// Answers, one set for each time the name is asked for; the last one stays.
    pub(crate) in_turn: Vec<Vec<IpAddr>>,
    /// Another name in between.
    pub(crate) alias: Option<String>,
    /// The server says that it failed.
    pub(crate) fails: bool,
}

/// Stops with the test's runtime.
#[derive(Clone, Default)]
pub(crate) struct NameServer {
    names: Arc<Mutex<HashMap<String, Records>>>,
    asked: Arc<Mutex<Vec<(String, u16)>>>,
}

impl NameServer {
    pub(crate) async fn start(address: &str) -> Self {
        let socket = UdpSocket::bind(address).await.unwrap();
        let server = Self::default();
        let serving = server.clone();
        tokio::spawn(async move {
            let mut query = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut query).await {
                let answer = serving.answer(&query[..length]);
                socket.send_to(&answer, from).await.unwrap();
            }
        });
        server
    }

    pub(crate) fn set(&self, name: &str, records: Records) {
        let mut names = self.names.lock().unwrap();
        names.insert(name.to_owned(), records);
    }

    /// Takes the names asked for since the last call, one for each query of addresses.
    pub(crate) fn take_asked(&self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked.into_iter().map(|(name, _)| name).collect()
    }

    fn answer(&self, query: &[u8]) -> Vec<u8> {
        let (name, kind, question_end) = question(query);
        let records = self.names.lock().unwrap().get(&name).cloned();
        let asked_before = {
            let mut asked = self.asked.lock().unwrap();
            asked.push((name.clone(), kind));
            let same = |(asked_name, asked_kind): &&(String, u16)| {
                *asked_name == name && *asked_kind == kind
            };
            asked.iter().filter(same).count() - 1
        };
        let code = match &records {
            Some(records) if records.fails => 2,
            Some(_) => 0,
            None => 3,
        };
        let records = records.unwrap_or_default();
        let sets = &records.in_turn;
        let set = sets.get(asked_before.min(sets.len().saturating_sub(1)));
        let mut answers = Vec::new();
        if let Some(alias) = &records.alias {
            answers.push(record(&[0xc0, HEADER_BYTES as u8], CNAME, &encoded(alias)));
        }
        let owner = records
            .alias
            .map_or(vec![0xc0, HEADER_BYTES as u8], |name| encoded(&name));
        for address in set.into_iter().flatten() {
            match (address, kind) {
                (IpAddr::V4(v4), A) => answers.push(record(&owner, A, &v4.octets())),
                (IpAddr::V6(v6), AAAA) => answers.push(record(&owner, AAAA, &v6.octets())),
                _ => {}
            }
        }
        // A response, recursion desired and available; one question, the answers, nothing else.
        let flags = [0x81, 0x80 | code];
        let counts = [0, 1, 0, answers.len() as u8, 0, 0, 0, 0];
        let question = &query[HEADER_BYTES..question_end];
        [&query[..2], &flags, &counts, question, &answers.concat()].concat()
    }
}

/// The name in lower case, the type, and where the question ends.
fn question(query: &[u8]) -> (String, u16, usize) {
    let mut at = HEADER_BYTES;
    let mut labels = Vec::new();
    while query[at] != 0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8_lossy(&query[at + 1..end]).to_ascii_lowercase());
        at = end;
    }
    let kind = u16::from_be_bytes([query[at + 1], query[at + 2]]);
    (labels.join("."), kind, at + 5)
}

fn encoded(name: &str) -> Vec<u8> {
    let labels = name
        .split('.')
        .map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    labels.chain([vec![0]]).collect::<Vec<_>>().concat()
}

/// Class IN, to be kept for no second.
fn record(owner: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u16).to_be_bytes();
    let middle = [&kind.to_be_bytes(), [0, 1].as_slice(), &[0; 4], &length].concat();
    [owner, &middle, data].concat()
}
