//! PyTorch's container before 0.1.10: a tar archive of `storages` (their bytes), `tensors` (views of them) and
//! `pickle` (the weights, which name tensors by number).

use std::collections::BTreeMap;

use super::bytes::{Bytes, text};
use super::global::Global;
use super::pickle::{self, Persistent, Pickle, Storage, Value, View};
use super::tensor::DIMENSIONS_MAX;
use super::{TENSORS_MAX, Tensor, refuse, tensors_of};
use crate::error::ModelError;

const BLOCK: usize = 512;
/// Where a header says what it is.
const USTAR: std::ops::Range<usize> = 257..262;
/// Files of the archive; there are four.
const FILES_MAX: usize = 64;

type Storages<'a> = BTreeMap<String, (Storage<'a>, &'a [u8])>;

pub(crate) fn is_tar(file: &[u8]) -> bool {
    file.get(USTAR).is_some_and(|word| word == b"ustar")
}

pub(crate) fn tensors(file: &[u8]) -> Result<BTreeMap<String, Tensor<'_>>, ModelError> {
    let files = files(file)?;
    let find = |name: &str| {
        let found = files.get(name).copied();
        found.ok_or_else(|| refuse(format!("a tar archive without {name:?}")))
    };
    let storages = storages(find("storages")?)?;
    let views = views(find("tensors")?, &storages)?;
    let weights = pickle::read(find("pickle")?, &Persistent::Views(&views))?;
    tensors_of(&weights, &|key| {
        let found = storages.get(key).map(|&(_, bytes)| bytes);
        found.ok_or_else(|| refuse(format!("the storage {key:?} is missing")))
    })
}

/// The archive's ordinary files by name, whatever folder they lie in.
fn files(file: &[u8]) -> Result<BTreeMap<&str, &[u8]>, ModelError> {
    let mut rest = Bytes::new(file);
    let mut files = BTreeMap::new();
    for _ in 0..FILES_MAX {
        if rest.rest.len() < BLOCK {
            break;
        }
        let header = rest.take(BLOCK)?;
        if header[0] == 0 {
            break;
        }
        let name = header[..100].split(|&byte| byte == 0).next().unwrap_or(&[]);
        let size = octal(&header[124..136])?;
        let contents = rest.take(size)?;
        rest.take((size.next_multiple_of(BLOCK) - size).min(rest.rest.len()))?;
        if matches!(header[156], b'0' | 0) {
            let name = text(name)?;
            files.insert(name.rsplit('/').next().unwrap_or(name), contents);
        }
    }
    Ok(files)
}

fn octal(digits: &[u8]) -> Result<usize, ModelError> {
    let digits = text(digits)?.trim_matches(['\0', ' ']);
    let size = usize::from_str_radix(digits, 8).ok();
    size.filter(|&size| size <= super::FILE_BYTES_MAX)
        .ok_or_else(|| refuse(format!("{digits:?} is no size of a file in a tar archive")))
}

fn next<'a>(rest: &mut Bytes<'a>) -> Result<Pickle<'a>, ModelError> {
    let pickle = pickle::read(rest.rest, &Persistent::None)?;
    rest.take(pickle.length)?;
    Ok(pickle)
}

fn next_count(rest: &mut Bytes<'_>, what: &str) -> Result<usize, ModelError> {
    let pickle = next(rest)?;
    match *pickle.value(pickle.root) {
        Value::Int(count) if (0..=TENSORS_MAX as i64).contains(&count) => Ok(count as usize),
        _ => Err(refuse(format!(
            "the number of {what} is not 0 to {TENSORS_MAX}"
        ))),
    }
}

/// The three values of a tuple.
fn next_three<'a>(rest: &mut Bytes<'a>) -> Result<[Value<'a>; 3], ModelError> {
    let pickle = next(rest)?;
    match pickle.value(pickle.root) {
        Value::Tuple(ids) if ids.len() == 3 => {
            Ok([ids[0], ids[1], ids[2]].map(|id| pickle.value(id).clone()))
        }
        other => Err(refuse(format!(
            "a {} where three values are expected",
            other.kind()
        ))),
    }
}

/// Numbers name storages and tensors; old programs wrote them as texts now and then.
fn key_of(value: &Value<'_>) -> Result<String, ModelError> {
    match value {
        Value::Int(number) => Ok(number.to_string()),
        Value::Text(text) => Ok((*text).to_owned()),
        other => Err(refuse(format!("a {} is no key", other.kind()))),
    }
}

fn storages(file: &[u8]) -> Result<Storages<'_>, ModelError> {
    let mut rest = Bytes::new(file);
    let mut storages = Storages::new();
    for _ in 0..next_count(&mut rest, "storages")? {
        let [key, _, kind] = next_three(&mut rest)?;
        let Value::Global(Global::Storage(kind)) = kind else {
            return Err(refuse("a storage of no known type"));
        };
        let count = rest.count()?;
        let bytes = count.checked_mul(kind.size());
        let bytes = bytes.ok_or_else(|| refuse(format!("a storage of {count} numbers")))?;
        let storage = Storage {
            kind,
            key: "",
            start: 0,
            count,
        };
        storages.insert(key_of(&key)?, (storage, rest.take(bytes)?));
    }
    // Views of storages as storages of their own are nothing that a dictionary of weights has.
    let views = next(&mut rest)?;
    match views.value(views.root) {
        Value::List(views) if views.is_empty() => Ok(storages),
        _ => Err(refuse(
            "its storages are views of one another, which is not supported",
        )),
    }
}

fn views<'a>(
    file: &[u8],
    storages: &'a Storages<'a>,
) -> Result<BTreeMap<String, View<'a>>, ModelError> {
    let mut rest = Bytes::new(file);
    let mut views = BTreeMap::new();
    for _ in 0..next_count(&mut rest, "tensors")? {
        let [key, storage, _] = next_three(&mut rest)?;
        let found = storages.get_key_value(&key_of(&storage)?);
        let (storage_key, &(storage, _)) =
            found.ok_or_else(|| refuse("a tensor of a storage that is missing"))?;
        let dimensions = rest.u32()?;
        // Four bytes that no reader has ever looked at.
        rest.take(4)?;
        if dimensions > DIMENSIONS_MAX {
            return Err(refuse(format!(
                "a tensor of {dimensions} dimensions, at most {DIMENSIONS_MAX}"
            )));
        }
        let mut counts = || {
            (0..dimensions)
                .map(|_| rest.count())
                .collect::<Result<Vec<_>, _>>()
        };
        let (shape, strides) = (counts()?, counts()?);
        let view = View {
            storage: Storage {
                key: storage_key,
                ..storage
            },
            offset: rest.count()?,
            shape,
            strides,
        };
        views.insert(key_of(&key)?, view);
    }
    Ok(views)
}
