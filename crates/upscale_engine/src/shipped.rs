//! The networks that ship, read when they are first asked for: a process that upscales one picture needs one of six.

use crate::error::ModelError;
use crate::network::Network;
use crate::ranges::Ranges;

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// One network that ships, chosen by `build.rs`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shipped {
    /// A weight file.
    pub(crate) weights: &'static [u8],
    /// Its layers, trained for finer detail.
    pub(crate) crisp: Option<&'static [u8]>,
    /// Its [`Ranges`]; none: they are found anew.
    pub(crate) ranges: Option<&'static [u8]>,
}

impl Shipped {
    /// Whether there are weights for this share of the crisp ones.
    pub(crate) fn has(&self, crisp_share: f32) -> bool {
        crisp_share == 0.0 || self.crisp.is_some()
    }

    /// The network with this share of the crisp weights, where there are any, 0..=1; in bytes.
    ///
    /// # Errors
    /// [`ModelError`] when the embedded bytes do not fit this program.
    pub(crate) fn read(&self, crisp_share: f32) -> Result<Network, ModelError> {
        // The crisp ones first: those that are read last lie at the heap's end, and what is freed there goes back to the
        // system, page by page; what is freed below, the plan takes again.
        let crisp = self.crisp.filter(|_| crisp_share > 0.0);
        let crisp = crisp.map(Network::read).transpose()?;
        let mut network = Network::read(self.weights)?;
        let layers = network.layers.len();
        if let Some(crisp) = crisp {
            network = network.mixed(&crisp, crisp_share)?;
        }
        network = network.in_bytes();
        let ranges = self.ranges.map(|file| Ranges::parse(file, layers));
        network.ranges = ranges.transpose()?;
        Ok(network)
    }
}
