//! Models in ncnn's form: a graph in a text file, its numbers in a second one. Nothing is known of such a network but
//! what the graph says, so the graph is followed: what our layers can do becomes a network of ours, anything else is
//! refused by the layer's type and name.
//!
//! Both files are hostile: their sizes are bounded first, every count is held against the bytes that are there.

mod graph;
mod lower;
mod numbers;
mod text;

use self::graph::Graph;
use self::numbers::Numbers;
use self::text::Text;
use crate::architecture::Architecture;
use crate::error::{ModelError, refuse};
use crate::network::Network;

/// What a text and its numbers begin with where they stand in one piece, as a service hands them to its children.
const PAIR: &[u8; 8] = b"upncnn-1";

/// The two files of a model as one; [`crate::Model::read`] takes it.
#[must_use]
pub fn join_ncnn(text: &[u8], numbers: &[u8]) -> Vec<u8> {
    let length = (text.len() as u64).to_le_bytes();
    [&PAIR[..], &length[..], text, numbers].concat()
}

pub(crate) fn is_pair(file: &[u8]) -> bool {
    file.starts_with(PAIR)
}

/// Reads what [`join_ncnn`] made.
pub(crate) fn read(pair: &[u8]) -> Result<(Architecture, Network), ModelError> {
    let short = || refuse("a pair of ncnn files that ends too early");
    let rest = pair.get(PAIR.len()..).ok_or_else(short)?;
    let (length, rest) = rest.split_first_chunk::<8>().ok_or_else(short)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
    let (text, numbers) = rest.split_at_checked(length).ok_or_else(short)?;
    let text = Text::read(text)?;
    let mut numbers = Numbers::of(numbers);
    let graph = Graph::read(&text, &mut numbers)?;
    numbers.check_end()?;
    lower::lower(graph, &mut numbers)
}

#[cfg(test)]
mod tests;
