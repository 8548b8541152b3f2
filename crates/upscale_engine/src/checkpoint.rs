//! Weight files as other programs write them: `.pth` in PyTorch's two containers since 0.1.10, and `.safetensors`. What comes
//! out are named tensors; which network they are is `architecture.rs`'s question.
//!
//! Every such file is hostile. Nothing in it is ever called: a pickle is read by a machine that knows 37
//! opcodes and a short list of names (`pickle.rs`). Tensors stay where they are in the file until an architecture
//! asks for one of exactly the shape it needs, so memory is the file's, one bounded pickle's and the network's.

mod bytes;
mod global;
mod kind;
mod legacy;
mod limits;
mod pickle;
mod tensor;
mod weights;
mod zip;

use std::collections::BTreeMap;

use safetensors::tensor::{Dtype, SafeTensors};

use self::kind::Kind;
use self::limits::TENSORS_MAX;
pub(crate) use self::tensor::Tensor;
use self::weights::{checked_name, tensors_of};
use crate::error::{ModelError, refuse};

/// RealESRGAN_x4plus, the largest that many use, has 67 MB; with both sets of weights of its training 134 MB.
pub(crate) const FILE_BYTES_MAX: usize = 256 << 20;
/// 702 tensors, which RRDBNet with 23 blocks has, need 75 KB.
const HEADER_BYTES_MAX: u64 = 1 << 20;
/// A file's tensors by name.
pub(crate) struct Checkpoint<'a> {
    /// What kind of file it is, in words.
    pub(crate) container: &'static str,
    pub(crate) tensors: BTreeMap<String, Tensor<'a>>,
}

impl<'a> Checkpoint<'a> {
    /// Reads the names, shapes and places of all tensors of a file that is wholly in memory.
    ///
    /// # Errors
    /// [`ModelError`] with the rule that the file breaks.
    pub(crate) fn read(file: &'a [u8]) -> Result<Self, ModelError> {
        check_size(file)?;
        let (container, tensors) = match file {
            _ if zip::is_zip(file) => ("PyTorch zip", zip_tensors(file)?),
            _ if legacy::is_legacy(file) => ("PyTorch legacy pickle", legacy::tensors(file)?),
            _ => ("safetensors", safetensors(file)?),
        };
        if tensors.len() > TENSORS_MAX {
            let count = tensors.len();
            return Err(refuse(format!("{count} tensors, at most {TENSORS_MAX}")));
        }
        let tensors = without_module(tensors);
        Ok(Self { container, tensors })
    }
}

/// The file as a whole.
pub(crate) fn check_size(file: &[u8]) -> Result<(), ModelError> {
    let size = file.len();
    if size > FILE_BYTES_MAX {
        return Err(refuse(format!("{size} bytes, at most {FILE_BYTES_MAX}")));
    }
    Ok(())
}

/// The header of a safetensors file, before anyone allocates for it.
pub(crate) fn check_header(file: &[u8], header_bytes_max: u64) -> Result<(), ModelError> {
    let Some(length) = file.first_chunk::<8>() else {
        return Err(refuse(format!("{} bytes hold no header", file.len())));
    };
    let header = u64::from_le_bytes(*length);
    if header > header_bytes_max {
        return Err(refuse(format!(
            "a header of {header} bytes, at most {header_bytes_max}: neither a safetensors file nor one of PyTorch's"
        )));
    }
    Ok(())
}

fn safetensors(file: &[u8]) -> Result<BTreeMap<String, Tensor<'_>>, ModelError> {
    check_header(file, HEADER_BYTES_MAX)?;
    let all = SafeTensors::deserialize(file).map_err(|error| {
        refuse(format!(
            "{error}: neither a safetensors file nor one of PyTorch's"
        ))
    })?;
    let mut tensors = BTreeMap::new();
    for (name, view) in all.iter() {
        let kind = match view.dtype() {
            Dtype::F64 => Kind::F64,
            Dtype::F32 => Kind::F32,
            Dtype::F16 => Kind::F16,
            Dtype::BF16 => Kind::Bf16,
            _ => Kind::Other,
        };
        let tensor = Tensor::contiguous(kind, view.data(), view.shape().to_vec());
        tensors.insert(checked_name(name)?, tensor);
    }
    Ok(tensors)
}

fn zip_tensors(file: &[u8]) -> Result<BTreeMap<String, Tensor<'_>>, ModelError> {
    let archive = zip::Archive::read(file)?;
    let pickle = pickle::read(archive.pickle()?, pickle::Persistent::Storages)?;
    tensors_of(&pickle, &|key| archive.storage(key))
}

/// Data-parallel training writes `module.` before every name.
fn without_module(tensors: BTreeMap<String, Tensor<'_>>) -> BTreeMap<String, Tensor<'_>> {
    let all = tensors.keys().all(|name| name.starts_with("module."));
    if !all {
        return tensors;
    }
    let bare = |name: &str| name.trim_start_matches("module.").to_owned();
    tensors
        .into_iter()
        .map(|(name, tensor)| (bare(&name), tensor))
        .collect()
}

#[cfg(test)]
mod tests;
