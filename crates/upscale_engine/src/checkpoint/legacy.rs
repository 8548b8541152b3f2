//! PyTorch's container from 0.1.10 to 1.5: pickles one after another (a magic number, a version, facts about the
//! machine, the weights, the storages' keys) and then every storage's count and bytes.

use std::collections::BTreeMap;

use super::bytes::Bytes;
use super::limits::TENSORS_MAX;
use super::pickle::{self, Persistent, Pickle, Value};
use super::tensor::Tensor;
use super::weights::tensors_of;
use crate::error::{ModelError, refuse};

/// The first pickle: protocol 2 and the number 0x1950a86a20f9469cfc6c.
pub(super) const MAGIC: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e";
const VERSION: i64 = 1001;

pub(crate) fn is_legacy(file: &[u8]) -> bool {
    file.starts_with(MAGIC)
}

pub(crate) fn tensors(file: &[u8]) -> Result<BTreeMap<String, Tensor<'_>>, ModelError> {
    let mut rest = Bytes::new(file);
    rest.take(MAGIC.len())?;
    let version = next(&mut rest, Persistent::None)?;
    if !matches!(version.value(version.root), Value::Int(VERSION)) {
        return Err(refuse(format!(
            "a legacy file of a version other than {VERSION}"
        )));
    }
    let machine = next(&mut rest, Persistent::None)?;
    if let Some(Value::Bool(false)) = machine.find("little_endian") {
        return Err(refuse("its numbers are not little-endian"));
    }
    let weights = next(&mut rest, Persistent::Storages)?;
    let keys = next(&mut rest, Persistent::None)?;
    let storages = storages(&weights, &keys, &mut rest)?;
    tensors_of(&weights, &|key| {
        let found = storages.get(key).copied();
        found.ok_or_else(|| refuse(format!("the storage {key:?} is missing")))
    })
}

fn next<'a>(rest: &mut Bytes<'a>, persistent: Persistent) -> Result<Pickle<'a>, ModelError> {
    let pickle = pickle::read(rest.rest, persistent)?;
    rest.take(pickle.length)?;
    Ok(pickle)
}

/// The storages stand in the order of the keys; only the pickle knows how long a number of each is.
fn storages<'a>(
    weights: &Pickle<'a>,
    keys: &Pickle<'a>,
    rest: &mut Bytes<'a>,
) -> Result<BTreeMap<&'a str, &'a [u8]>, ModelError> {
    let Value::List(keys_in_order) = keys.value(keys.root) else {
        return Err(refuse("the list of storages is missing"));
    };
    if keys_in_order.len() > TENSORS_MAX {
        let count = keys_in_order.len();
        return Err(refuse(format!("{count} storages, at most {TENSORS_MAX}")));
    }
    let sizes: BTreeMap<&str, usize> = weights
        .storages()
        .map(|one| (one.key, one.kind.size()))
        .collect();
    let mut storages = BTreeMap::new();
    for &key in keys_in_order {
        let Value::Text(key) = keys.value(key) else {
            return Err(refuse("a storage's key is not a text"));
        };
        let size = sizes.get(key);
        let size = size.ok_or_else(|| refuse(format!("no tensor has the storage {key:?}")))?;
        let count = rest.count()?;
        let bytes = count.checked_mul(*size);
        let bytes = bytes.ok_or_else(|| refuse(format!("a storage of {count} numbers")))?;
        if storages.insert(*key, rest.take(bytes)?).is_some() {
            return Err(refuse(format!("two storages have the key {key:?}")));
        }
    }
    Ok(storages)
}
