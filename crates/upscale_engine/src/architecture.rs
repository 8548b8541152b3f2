//! Which network a file's tensors are, told by their names and shapes alone: ESRGAN's RRDBNet under its three sets
//! of names, Compact, SPAN and others. A tensor too many or too few is a refusal: a network that is nearly the one we know
//! would run and give wrong pictures.

mod artcnn;
mod compact;
mod dis;
mod edsr;
mod esrgan;
mod span;
mod span_f;
mod span_plus;
mod srresnet;
mod upsampling;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use crate::checkpoint::{Checkpoint, Tensor};
use crate::error::{ModelError, refuse};
use crate::network::Network;

/// Numbers of a network: RRDBNet with 23 blocks has 16.7 million, which take 67 MB.
pub(crate) const PARAMETERS_MAX: usize = 64 << 20;
/// Channels of a map, and outputs of a layer.
pub(crate) const CHANNELS_MAX: usize = 256;
/// Blocks, or convolutions of Compact.
const BLOCKS_MAX: usize = 128;
/// Names shown when a file is refused.
const NAMES_SHOWN: usize = 4;

/// What a file's network is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// A network in this program's own format.
    Own,
    /// RRDBNet with the names of ESRGAN's first publication.
    EsrganOld,
    /// RRDBNet with the names of Real-ESRGAN.
    EsrganNew,
    /// RRDBNet with the names of BSRGAN and RealSR.
    Bsrgan,
    /// SRVGGNetCompact of Real-ESRGAN.
    Compact,
    /// SPAN.
    Span,
    /// SPAN-F, the shallower SPAN of 2025.
    SpanF,
    /// SPANPlus.
    SpanPlus,
    /// ArtCNN in RGB.
    ArtCnn,
    /// EDSR with the names of its authors' program.
    EdsrFirst,
    /// EDSR with the names of BasicSR.
    EdsrBasic,
    /// SRResNet of BasicSR.
    SrResNet,
    /// DIS, with either kind of block.
    Dis,
    /// RRDBNet in a file without names.
    Esrgan,
    /// No one's in particular: convolutions and what joins them, in a file without names.
    Convolutions,
}

impl Architecture {
    /// The name that people use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "Upscale",
            Self::EsrganOld => "ESRGAN (RRDBNet, old names)",
            Self::EsrganNew => "ESRGAN (RRDBNet, new names)",
            Self::Bsrgan => "ESRGAN (RRDBNet, BSRGAN names)",
            Self::Compact => "Compact (SRVGGNetCompact)",
            Self::Span => "SPAN",
            Self::SpanF => "SPAN-F",
            Self::SpanPlus => "SPANPlus",
            Self::ArtCnn => "ArtCNN",
            Self::EdsrFirst => "EDSR (its authors' names)",
            Self::EdsrBasic => "EDSR (BasicSR names)",
            Self::SrResNet => "SRResNet (MSRResNet)",
            Self::Dis => "DIS",
            Self::Esrgan => "ESRGAN (RRDBNet)",
            Self::Convolutions => "a network of convolutions",
        }
    }
}

/// What is told when nothing fits.
const SUPPORTED: &str = "supported are ESRGAN (RRDBNet; old, new and BSRGAN names, 3, 12 or 48 input channels), \
    Compact (SRVGGNetCompact), SPAN, SPAN-F, SPANPlus without DySample, ArtCNN, EDSR, SRResNet (MSRResNet) and DIS, at 1x, 2x and 4x, RGB";

/// Builds the network that the tensors are.
///
/// # Errors
/// [`ModelError`]: an architecture that is not supported, a tensor of a wrong shape, a value that no weight has.
pub(crate) fn build(checkpoint: &Checkpoint<'_>) -> Result<(Architecture, Network), ModelError> {
    let weights = Weights {
        checkpoint,
        taken: RefCell::new(BTreeSet::new()),
        parameters: Cell::new(0),
    };
    let architecture = detect(&weights)?;
    let network = match architecture {
        Architecture::Compact => compact::build(&weights)?,
        Architecture::Span => span::build(&weights)?,
        Architecture::SpanF => span_f::build(&weights)?,
        Architecture::SpanPlus => span_plus::build(&weights)?,
        Architecture::ArtCnn => artcnn::build(&weights)?,
        Architecture::SrResNet => srresnet::build(&weights)?,
        Architecture::Dis => dis::build(&weights)?,
        set @ (Architecture::EdsrFirst | Architecture::EdsrBasic) => edsr::build(&weights, set)?,
        other => esrgan::build(&weights, other)?,
    };
    weights.check_all_taken(architecture)?;
    Ok((architecture, network))
}

/// Two tensors that only a network of that kind has, both of them.
const MARKS: &[(Architecture, &str, &str)] = &[
    (
        Architecture::EsrganOld,
        "model.0.weight",
        "model.1.sub.0.RDB1.conv1.0.weight",
    ),
    (
        Architecture::EsrganNew,
        "conv_first.weight",
        "body.0.rdb1.conv1.weight",
    ),
    (
        Architecture::Bsrgan,
        "conv_first.weight",
        "RRDB_trunk.0.RDB1.conv1.weight",
    ),
    (
        Architecture::Span,
        "conv_1.sk.weight",
        "block_1.c1_r.sk.weight",
    ),
    (
        Architecture::Span,
        "conv_1.eval_conv.weight",
        "block_1.c1_r.eval_conv.weight",
    ),
    (
        Architecture::SpanF,
        "conv_near.weight",
        "block_1.c1_r.eval_conv.weight",
    ),
    (
        Architecture::SpanF,
        "conv_near.weight",
        "block_1.c1_r.sk.weight",
    ),
    (
        Architecture::SpanPlus,
        "feats.0.eval_conv.weight",
        "feats.1.block_1.c1_r.eval_conv.weight",
    ),
    (
        Architecture::SpanPlus,
        "feats.0.sk.weight",
        "feats.1.block_1.c1_r.sk.weight",
    ),
    (
        Architecture::ArtCnn,
        "conv0.weight",
        "depth_to_space.upscale.0.weight",
    ),
    (
        Architecture::EdsrFirst,
        "body.0.body.0.weight",
        "tail.1.weight",
    ),
    (
        Architecture::EdsrBasic,
        "body.0.conv1.weight",
        "conv_after_body.weight",
    ),
    (
        Architecture::SrResNet,
        "body.0.conv1.weight",
        "conv_hr.weight",
    ),
    (Architecture::Dis, "head_act.weight", "fusion.weight"),
];

fn detect(weights: &Weights<'_>) -> Result<Architecture, ModelError> {
    let found = MARKS
        .iter()
        .find(|(_, one, other)| weights.has(one) && weights.has(other));
    if let Some(&(architecture, ..)) = found {
        return Ok(architecture);
    }
    // Many networks have a `body`; the PReLU between two convolutions is Compact's.
    let shape = |name| weights.find(name).map(|tensor| tensor.shape.len());
    let compact = ["body.0.weight", "body.1.weight", "body.2.weight"].map(shape);
    if compact == [Some(4), Some(1), Some(4)] {
        return Ok(Architecture::Compact);
    }
    let names: Vec<&str> = weights
        .checkpoint
        .tensors
        .keys()
        .map(String::as_str)
        .collect();
    let count = names.len();
    let shown = names
        .iter()
        .take(NAMES_SHOWN)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    Err(refuse(match known_elsewhere(&names) {
        _ if count == 0 => format!("no tensors in it; {SUPPORTED}"),
        Some(name) => {
            let why = why_not(name);
            format!("this is {name}, which is not supported{why}; {SUPPORTED}")
        }
        None => format!("an unknown network of {count} tensors ({shown}, ...); {SUPPORTED}"),
    }))
}

/// Well-known networks that do not run here, by parts of the names of their tensors.
fn known_elsewhere(names: &[&str]) -> Option<&'static str> {
    let known = [
        (".seblock.", CUGAN),
        ("feats.1.layer_norm.", PLKSR_OF_PIXELS),
        ("feats.1.channel_mixer.", PLKSR),
        ("feats.1.channe_mixer.", "PLKSR"),
        ("RDB1.conv1x1.", "ESRGAN+"),
        ("overlap_attn.", "HAT"),
        ("residual_group.blocks.0.attn.logit_scale", "Swin2SR"),
        ("residual_group.blocks.0.", "SwinIR"),
        ("stylegan_decoder.", "GFPGAN"),
        ("quantize.embedding.", "CodeFormer or RestoreFormer"),
        ("channel_interaction", "DAT"),
        ("patch_embed.", "a transformer"),
        (".attn.", "a transformer"),
        ("relative_position_bias_table", "a transformer"),
        ("rcab.", "RCAN"),
        ("body.0.body.0.body.0.weight", "RCAN"),
        ("conv_after_body.", "a network like EDSR"),
        ("body.0.conv1.weight", "a network like SRResNet"),
        ("head.0.weight", "RCAN, MDSR or one of their kind"),
    ];
    let is_in = |part: &str| names.iter().any(|name| name.contains(part));
    known
        .iter()
        .find(|(part, _)| is_in(part))
        .map(|&(_, name)| name)
}

const CUGAN: &str = "Real-CUGAN";
const PLKSR: &str = "RealPLKSR";
const PLKSR_OF_PIXELS: &str = "RealPLKSR with layer norm";

/// Why a network that many bring does not run, as the end of a sentence.
fn why_not(name: &str) -> &'static str {
    match name {
        CUGAN => {
            " (each of its four squeeze-and-excite blocks multiplies by the means of a whole map, which are only known \
             after a pass over the picture)"
        }
        PLKSR => {
            " (each block's group norm divides by the variance of whole maps, which is only known after a pass over the \
             picture)"
        }
        PLKSR_OF_PIXELS => " (its kernels of 17 x 17 and its norms have no layer here)",
        _ => "",
    }
}

/// Weights and bias of a convolution.
pub(crate) type Conv = (Vec<f32>, Vec<f32>);

/// A file's tensors while a network is made of them.
pub(crate) struct Weights<'a> {
    checkpoint: &'a Checkpoint<'a>,
    taken: RefCell<BTreeSet<String>>,
    parameters: Cell<usize>,
}

impl Weights<'_> {
    fn find(&self, name: &str) -> Option<&Tensor<'_>> {
        self.checkpoint.tensors.get(name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// A tensor that is there and of no interest.
    pub(crate) fn skip(&self, name: &str) {
        self.taken.borrow_mut().insert(name.to_owned());
    }

    /// The shape of a convolution's weights, `[out, read, side, side]`, within what the engine runs.
    pub(crate) fn conv_shape(&self, name: &str) -> Result<[usize; 4], ModelError> {
        let weight = format!("{name}.weight");
        let tensor = self.find(&weight).ok_or_else(|| missing(&weight))?;
        let &[out, read, height, width] = tensor.shape.as_slice() else {
            let shape = &tensor.shape;
            return Err(refuse(format!(
                "{weight} has shape {shape:?}, a convolution's has four"
            )));
        };
        if out == 0 || out > CHANNELS_MAX || read == 0 {
            return Err(refuse(format!(
                "{weight} has {out} outputs, at most {CHANNELS_MAX}"
            )));
        }
        Ok([out, read, height, width])
    }

    /// The outputs of a first convolution, which has to read red, green and blue.
    pub(crate) fn channels_of_rgb(&self, name: &str) -> Result<usize, ModelError> {
        match self.conv_shape(name)? {
            [channels, 3, ..] => Ok(channels),
            [_, read, ..] => Err(refuse(format!(
                "{name}.weight reads {read} channels, not 3: no RGB"
            ))),
        }
    }

    /// The weights `[out, read, side, side]` and the bias of a convolution.
    pub(crate) fn conv(
        &self,
        name: &str,
        (out, read): (usize, usize),
        side: usize,
    ) -> Result<Conv, ModelError> {
        let weights = self.tensor(&format!("{name}.weight"), &[out, read, side, side])?;
        Ok((weights, self.tensor(&format!("{name}.bias"), &[out])?))
    }

    /// The numbers of a tensor of exactly this shape.
    pub(crate) fn tensor(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let tensor = self.find(name).ok_or_else(|| missing(name))?;
        if tensor.shape != shape {
            let given = &tensor.shape;
            return Err(refuse(format!("{name} has shape {given:?}, not {shape:?}")));
        }
        let parameters = self.parameters.get() + tensor.count();
        if parameters > PARAMETERS_MAX {
            return Err(refuse(format!("more than {PARAMETERS_MAX} parameters")));
        }
        self.parameters.set(parameters);
        self.skip(name);
        tensor.values(name)
    }

    /// How many blocks there are, counted from 0 by a tensor that each one has.
    pub(crate) fn blocks(&self, name: impl Fn(usize) -> String) -> Result<usize, ModelError> {
        match (0..=BLOCKS_MAX).find(|&block| !self.has(&name(block))) {
            Some(blocks) => Ok(blocks),
            None => Err(refuse(format!("more than {BLOCKS_MAX} blocks"))),
        }
    }

    fn check_all_taken(&self, architecture: Architecture) -> Result<(), ModelError> {
        let taken = self.taken.borrow();
        let left = self
            .checkpoint
            .tensors
            .keys()
            .find(|name| !taken.contains(*name));
        match left {
            None => Ok(()),
            Some(name) => Err(refuse(format!(
                "it looks like {}, but that has no tensor {name:?}",
                architecture.name()
            ))),
        }
    }
}

fn missing(name: &str) -> ModelError {
    refuse(format!("the tensor {name} is missing"))
}

/// 2 and 4 are what the service enlarges by; 1 restores a picture before that.
pub(crate) fn check_scale(architecture: Architecture, scale: usize) -> Result<usize, ModelError> {
    match scale {
        1 | 2 | 4 => Ok(scale),
        _ => Err(refuse(format!(
            "this is {} at {scale}x; supported are 1x, 2x and 4x",
            architecture.name()
        ))),
    }
}

/// The enlargement of a last layer that a pixel shuffle follows, from its output channels.
pub(crate) fn shuffled_scale(
    architecture: Architecture,
    name: &str,
    channels: usize,
) -> Result<usize, ModelError> {
    let scale = (1..=16).find(|scale| 3 * scale * scale == channels);
    let scale = scale.ok_or_else(|| {
        refuse(format!(
            "{name} has {channels} outputs, not 3 times the square of a scale: no RGB"
        ))
    })?;
    check_scale(architecture, scale)
}
