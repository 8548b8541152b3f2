//! Where in a pickle the weights are: below which wrappers, and which of its values are tensors.

use std::collections::BTreeMap;

use super::limits::NAME_BYTES_MAX;
use super::pickle::{Pickle, Value};
use super::tensor::Tensor;
use crate::error::{ModelError, refuse};

/// Dictionaries in dictionaries that are looked into for the weights.
const LEVELS_MAX: usize = 3;

/// Keys under which training programs keep the weights, the best ones first.
pub(super) const WRAPPERS: [&str; 7] = [
    "params_ema",
    "params-ema",
    "params",
    "model_state_dict",
    "state_dict",
    "model",
    "net",
];

/// The tensors of the dictionary that holds the weights; `storage` finds a storage's bytes by its key.
pub(super) fn tensors_of<'a>(
    pickle: &Pickle<'_>,
    storage: &dyn Fn(&str) -> Result<&'a [u8], ModelError>,
) -> Result<BTreeMap<String, Tensor<'a>>, ModelError> {
    let mut tensors = BTreeMap::new();
    for &(key, value) in unwrap(pickle)? {
        let (Value::Text(name), Value::Tensor(view)) = (pickle.value(key), pickle.value(value))
        else {
            continue;
        };
        let bytes = storage(view.storage.key)?;
        tensors.insert(checked_name(name)?, Tensor::of_view(view, bytes)?);
    }
    Ok(tensors)
}

/// Follows the wrappers down to the dictionary of tensors.
fn unwrap<'p>(pickle: &'p Pickle<'_>) -> Result<&'p [(usize, usize)], ModelError> {
    let Value::Dict(items) = pickle.value(pickle.root) else {
        let kind = pickle.value(pickle.root).kind();
        return Err(refuse(format!(
            "the file holds a {kind}, not a dictionary of weights"
        )));
    };
    let mut items: &'p [(usize, usize)] = items.as_slice();
    for _ in 0..LEVELS_MAX {
        let inner = WRAPPERS.iter().find_map(|wrapper| {
            let wrapped = |&&(key, _): &&(usize, usize)| {
                matches!(pickle.value(key), Value::Text(name) if name == wrapper)
            };
            match pickle.value(items.iter().find(wrapped)?.1) {
                Value::Dict(inner) => Some(inner.as_slice()),
                _ => None,
            }
        });
        match inner {
            Some(inner) => items = inner,
            None => break,
        }
    }
    Ok(items)
}

/// A tensor's name, if it is not too long.
pub(super) fn checked_name(name: &str) -> Result<String, ModelError> {
    if name.len() > NAME_BYTES_MAX {
        let bytes = name.len();
        return Err(refuse(format!(
            "a tensor's name has {bytes} bytes, at most {NAME_BYTES_MAX}"
        )));
    }
    Ok(name.to_owned())
}
