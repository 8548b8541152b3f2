//! What a network looks like once it is one: the family that people know it by, and where it can be cut.

use crate::architecture::Architecture;
use crate::network::{Base, Combine, Network};

/// Layers that follow each other closely: see [`Network::sections`]. Compact has 34.
const TOGETHER_MAX: usize = 64;
/// A section is worth its whole maps from so many layers on; a residual block of ESRGAN has 15.
const SECTION_LAYERS: usize = 12;
/// Whole maps between two sections.
const WHOLE_MAPS_MAX: usize = 2;
/// Maps side by side that only dense blocks read.
const DENSE_READS: usize = 4;

/// What people call a network that looks like this.
pub(super) fn family(network: &Network) -> Architecture {
    let joins = network.layers.iter().flat_map(|layer| &layer.combine);
    let is_gated = joins
        .clone()
        .any(|join| matches!(join, Combine::Gate { .. }));
    match network.base {
        _ if is_gated => Architecture::Span,
        _ if is_dense(network) => Architecture::Esrgan,
        Base::Nearest if joins.clone().next().is_none() => Architecture::Compact,
        _ => Architecture::Convolutions,
    }
}

fn is_dense(network: &Network) -> bool {
    let mut layers = network.layers.iter();
    layers.any(|layer| layer.side == 3 && layer.inputs.len() >= DENSE_READS)
}

/// Where few maps are read across, a deep network is cut: see [`Network::sections`].
pub(super) fn cut_into_sections(network: &mut Network) {
    if !is_dense(network) && network.layers.len() <= TOGETHER_MAX {
        return;
    }
    let mut last_read = vec![0; network.maps.len()];
    for (index, layer) in network.layers.iter().enumerate() {
        let joined = layer.combine.iter().map(|join| join.map());
        for map in layer.inputs.iter().copied().chain(joined) {
            last_read[map] = index;
        }
    }
    let mut begun = 0;
    for next in 1..network.layers.len() {
        // Layer `i` writes map `i + 1`.
        let across = (1..=next).filter(|&map| last_read[map] >= next).count();
        if across <= WHOLE_MAPS_MAX && next - begun >= SECTION_LAYERS {
            network.sections.push(next);
            begun = next;
        }
    }
}
