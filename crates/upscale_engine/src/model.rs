//! A model file of anyone's: ours, PyTorch's, safetensors or ncnn's pair; which it is the file itself says.

use safetensors::tensor::SafeTensors;

use crate::architecture::{self, Architecture};
use crate::checkpoint::{Checkpoint, check_header, check_size};
use crate::error::ModelError;
use crate::ncnn;
use crate::network::Network;

/// The header of one of our own files is far smaller.
const OWN_HEADER_BYTES_MAX: u64 = 256 << 10;

/// A network and what its file was.
#[derive(Debug, Clone)]
pub struct Model {
    /// The network, ready to be planned.
    pub network: Network,
    /// What kind of network it is.
    pub architecture: Architecture,
    /// What kind of file it came from, in words.
    pub container: &'static str,
}

impl Model {
    /// Reads a model file that is wholly in memory: `upscale-1`, `.pth` (zip or legacy), `.safetensors`, or what
    /// [`crate::join_ncnn`] made of `.param` and `.bin`.
    ///
    /// # Errors
    /// [`ModelError`] with the rule that the file breaks, or what it is and what is supported instead. Memory stays
    /// below the file's size, a pickle's values (40 MB at most) and twice the network's numbers (256 MB at most).
    pub fn read(file: &[u8]) -> Result<Self, ModelError> {
        check_size(file)?;
        if is_own(file) {
            return Ok(Self {
                network: Network::read(file)?,
                architecture: Architecture::Own,
                container: "upscale-1 (safetensors)",
            });
        }
        if ncnn::is_pair(file) {
            let (architecture, network) = ncnn::read(file)?;
            return Ok(Self {
                network,
                architecture,
                container: "ncnn (.param and .bin)",
            });
        }
        let checkpoint = Checkpoint::read(file)?;
        let (architecture, network) = architecture::build(&checkpoint)?;
        Ok(Self {
            network,
            architecture,
            container: checkpoint.container,
        })
    }
}

/// Whether the metadata name a format of ours; PyTorch's own safetensors files say `pt` there.
fn is_own(file: &[u8]) -> bool {
    if check_header(file, OWN_HEADER_BYTES_MAX).is_err() {
        return false;
    }
    let header = SafeTensors::read_metadata(file);
    let format = header
        .as_ref()
        .ok()
        .and_then(|(_, header)| header.metadata().as_ref()?.get("format"));
    format.is_some_and(|format| format.starts_with("upscale-"))
}
