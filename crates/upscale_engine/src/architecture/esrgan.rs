//! RRDBNet (X. Wang et al.: "ESRGAN", 2018; Real-ESRGAN, 2021): residual blocks of dense blocks, then nearest-neighbour
//! enlargements with a convolution each. Real-ESRGAN's forms for 2x and 1x read squares of pixels and enlarge four times.

use super::{Architecture, Weights, check_scale};
use crate::error::{ModelError, refuse};
use crate::network::{Activation, Base, Combine, Map, Network, PICTURE};
use crate::shapes::leaky;

/// What a dense block and a residual block multiply their own part with.
const RESIDUAL: f32 = 0.2;
/// Enlargements that are looked for: 16x is refused by its number.
const UPS_MAX: usize = 4;

/// How the convolutions are called.
struct Names {
    set: Architecture,
    /// Residual blocks and enlargements.
    blocks: usize,
    ups: usize,
}

impl Names {
    fn find(weights: &Weights<'_>, set: Architecture) -> Result<Self, ModelError> {
        let blocks = weights.blocks(|i| format!("{}.weight", dense(set, i, 0, 0)))?;
        let mut names = Self {
            set,
            blocks,
            ups: 0,
        };
        while names.ups < UPS_MAX && weights.has(&format!("{}.weight", names.up(names.ups))) {
            names.ups += 1;
        }
        Ok(names)
    }

    fn first(&self) -> &'static str {
        match self.set {
            Architecture::EsrganOld => "model.0",
            _ => "conv_first",
        }
    }

    fn body(&self) -> String {
        match self.set {
            Architecture::EsrganOld => format!("model.1.sub.{}", self.blocks),
            Architecture::Bsrgan => "trunk_conv".to_owned(),
            _ => "conv_body".to_owned(),
        }
    }

    /// Old names number all parts in a row: the first convolution, the trunk, three parts for each enlargement.
    fn up(&self, up: usize) -> String {
        match self.set {
            Architecture::EsrganOld => format!("model.{}", 3 * up + 3),
            Architecture::Bsrgan => format!("upconv{}", up + 1),
            _ => format!("conv_up{}", up + 1),
        }
    }

    fn high(&self) -> String {
        match self.set {
            Architecture::EsrganOld => format!("model.{}", 3 * self.ups + 2),
            Architecture::Bsrgan => "HRconv".to_owned(),
            _ => "conv_hr".to_owned(),
        }
    }

    fn last(&self) -> String {
        match self.set {
            Architecture::EsrganOld => format!("model.{}", 3 * self.ups + 4),
            _ => "conv_last".to_owned(),
        }
    }
}

/// Convolution `part` of a dense block.
fn dense(set: Architecture, block: usize, dense: usize, part: usize) -> String {
    let (dense, part) = (dense + 1, part + 1);
    match set {
        Architecture::EsrganOld => format!("model.1.sub.{block}.RDB{dense}.conv{part}.0"),
        Architecture::Bsrgan => format!("RRDB_trunk.{block}.RDB{dense}.conv{part}"),
        _ => format!("body.{block}.rdb{dense}.conv{part}"),
    }
}

pub(super) fn build(weights: &Weights<'_>, set: Architecture) -> Result<Network, ModelError> {
    let names = Names::find(weights, set)?;
    let [channels, read, ..] = weights.conv_shape(names.first())?;
    let [growth, ..] = weights.conv_shape(&dense(set, 0, 0, 0))?;
    let side = match read {
        3 => 1,
        12 => 2,
        48 => 4,
        _ => {
            return Err(refuse(format!(
                "{}.weight reads {read} channels; supported are 3 (RGB), 12 and 48 (squares of 2 and 4 RGB pixels)",
                names.first()
            )));
        }
    };
    let grown = 1 << names.ups;
    if grown < side {
        return Err(refuse(format!(
            "it makes pictures {} times smaller",
            side / grown
        )));
    }
    let scale = check_scale(set, grown / side)?;
    let mut network = Network::unshuffled(&format!("esrgan-x{scale}"), scale, Base::Zero, side);
    let first = weights.conv(names.first(), (channels, read), 3)?;
    let head = network.push(&[PICTURE], first, Activation::None, &[]);
    let trunk = trunk(weights, &names, &mut network, head, (channels, growth))?;
    network.begin_section();
    tail(weights, &names, &mut network, head, trunk)?;
    Ok(network)
}

/// All residual blocks, each a section: what goes from one to the next are whole maps.
fn trunk(
    weights: &Weights<'_>,
    names: &Names,
    network: &mut Network,
    head: Map,
    (channels, growth): (usize, usize),
) -> Result<Map, ModelError> {
    let add = |map| Combine::Add {
        map,
        scale: RESIDUAL,
    };
    let mut x = head;
    for block in 0..names.blocks {
        if block > 0 {
            network.begin_section();
        }
        let input = x;
        for one in 0..3 {
            let mut inputs = vec![x];
            for part in 0..4 {
                let shape = (growth, channels + part * growth);
                let conv = weights.conv(&dense(names.set, block, one, part), shape, 3)?;
                inputs.push(network.push(&inputs, conv, leaky(growth), &[]));
            }
            let shape = (channels, channels + 4 * growth);
            let conv = weights.conv(&dense(names.set, block, one, 4), shape, 3)?;
            let joined = [add(x), add(input)];
            let count = if one == 2 { 2 } else { 1 };
            x = network.push(&inputs, conv, Activation::None, &joined[..count]);
        }
    }
    Ok(x)
}

fn tail(
    weights: &Weights<'_>,
    names: &Names,
    network: &mut Network,
    head: Map,
    trunk: Map,
) -> Result<(), ModelError> {
    let channels = network.maps[head];
    let body = weights.conv(&names.body(), (channels, channels), 3)?;
    let join = Combine::Add {
        map: head,
        scale: 1.0,
    };
    let mut map = network.push(&[trunk], body, Activation::None, &[join]);
    for up in 0..names.ups {
        let conv = weights.conv(&names.up(up), (channels, channels), 3)?;
        map = network.push_up(&[map], conv, leaky(channels));
    }
    let high = weights.conv(&names.high(), (channels, channels), 3)?;
    let high = network.push(&[map], high, leaky(channels), &[]);
    let last = weights.conv(&names.last(), (3, channels), 3)?;
    network.push(&[high], last, Activation::None, &[]);
    Ok(())
}
