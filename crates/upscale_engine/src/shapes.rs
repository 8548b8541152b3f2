//! Networks with seeded random weights, in the shapes that benchmarks and tests need: no file, no download.
//! Gains keep the values of every layer near 1, as trained networks do, so that errors mean something.

use crate::network::{Activation, Base, Combine, Map, Network, PICTURE};

/// A shape of models.md, section 1, or of the networks that users bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// SRVGGNetCompact: `convs` convolutions with PReLU after the first one, nearest base.
    Compact {
        /// Channels of every map.
        channels: usize,
        /// Convolutions between the first and the last.
        convs: usize,
    },
    /// Residual blocks of three convolutions with ReLU, four taps, bicubic base: what ships.
    Residual {
        /// Channels of every map.
        channels: usize,
        /// Blocks of three convolutions.
        blocks: usize,
    },
    /// The same topology with SPAN's gate and SiLU.
    Span {
        /// Channels of every map.
        channels: usize,
        /// Blocks of three convolutions.
        blocks: usize,
    },
    /// The same with Mish, as SPANPlus has it.
    SpanPlus {
        /// Channels of every map.
        channels: usize,
        /// Blocks of three convolutions.
        blocks: usize,
    },
    /// RRDBNet, the network of ESRGAN: dense blocks within residual blocks, no base. At 2x it reads squares of 2 x 2
    /// pixels and enlarges them four times, as RealESRGAN_x2plus does.
    Rrdb {
        /// Channels of the trunk.
        channels: usize,
        /// Channels that each convolution of a dense block adds.
        growth: usize,
        /// Residual blocks of three dense blocks of five convolutions.
        blocks: usize,
    },
    /// EDSR: residual blocks, then enlargements by two, each a convolution and a pixel shuffle; onto a bilinear base, as
    /// SRResNet has it.
    Edsr {
        /// Channels of every map.
        channels: usize,
        /// Residual blocks of two convolutions.
        blocks: usize,
    },
}

impl Shape {
    /// The shape behind a tier's or a family's name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let residual = |channels, blocks| Some(Self::Residual { channels, blocks });
        match name {
            "compact" => Some(Self::Compact {
                channels: 64,
                convs: 32,
            }),
            "f" => residual(32, 4),
            "s" => residual(48, 6),
            "x" => residual(64, 10),
            "span" => Some(Self::Span {
                channels: 48,
                blocks: 6,
            }),
            "rrdb" => Some(Self::Rrdb {
                channels: 64,
                growth: 32,
                blocks: 23,
            }),
            _ => None,
        }
    }

    /// A network of this shape; the same seed gives the same weights everywhere.
    #[must_use]
    pub fn network(self, scale: usize, seed: u64) -> Network {
        let mut random = Random(seed);
        match self {
            Self::Compact { channels, convs } => compact(&mut random, scale, channels, convs),
            Self::Residual { channels, blocks } => {
                taps(&mut random, scale, channels, blocks, &Activation::Relu)
            }
            Self::Span { channels, blocks } => {
                taps(&mut random, scale, channels, blocks, &Activation::Silu)
            }
            Self::SpanPlus { channels, blocks } => {
                taps(&mut random, scale, channels, blocks, &Activation::Mish)
            }
            Self::Rrdb {
                channels,
                growth,
                blocks,
            } => rrdb(&mut random, scale, (channels, growth), blocks),
            Self::Edsr { channels, blocks } => edsr(&mut random, scale, channels, blocks),
        }
    }
}

fn compact(random: &mut Random, scale: usize, channels: usize, convs: usize) -> Network {
    let mut network = Network::empty("compact", scale, Base::Nearest);
    // A PReLU of slope a keeps the variance when the weights have gain sqrt(2 / (1 + a^2)).
    let gain = (2.0_f32 / (1.0 + 0.25 * 0.25)).sqrt();
    let mut map = PICTURE;
    for _ in 0..=convs {
        let read = network.maps[map];
        let conv = random.conv(channels, read, 3, gain);
        let slopes = (0..channels).map(|_| 0.25 + 0.1 * random.normal());
        let slopes = Activation::Prelu(slopes.collect());
        map = network.push(&[map], conv, slopes, &[]);
    }
    let up = random.conv(3 * scale * scale, channels, 3, 0.2);
    network.push(&[map], up, Activation::None, &[]);
    network
}

fn taps(
    random: &mut Random,
    scale: usize,
    channels: usize,
    blocks: usize,
    activation: &Activation,
) -> Network {
    let gated = *activation != Activation::Relu;
    let mut network = Network::empty("taps", scale, Base::Bicubic);
    let (c, plain) = (channels, Activation::None);
    let head = random.conv(c, 3, 3, if gated { 4.0 } else { 1.5 });
    let f0 = network.push(&[PICTURE], head, plain.clone(), &[]);
    let (mut h, mut first, mut o1) = (f0, f0, f0);
    for block in 0..blocks {
        o1 = network.push(&[h], random.conv(c, c, 3, 1.6), activation.clone(), &[]);
        let o2 = network.push(&[o1], random.conv(c, c, 3, 1.6), activation.clone(), &[]);
        let join = if gated {
            Combine::Gate { map: h }
        } else {
            Combine::Add { map: h, scale: 1.0 }
        };
        let last = random.conv(c, c, 3, if gated { 2.0 } else { 0.3 });
        h = network.push(&[o2], last, plain.clone(), &[join]);
        if block == 0 {
            first = h;
        }
    }
    let g = network.push(&[h], random.conv(c, c, 3, 1.0), plain.clone(), &[]);
    let fuse = random.conv(c, 4 * c, 1, 1.0);
    let fused = network.push(&[f0, g, first, o1], fuse, plain.clone(), &[]);
    let up = random.conv(3 * scale * scale, c, 3, 0.1);
    network.push(&[fused], up, plain, &[]);
    network
}

/// LeakyReLU as every ESRGAN has it.
pub(crate) fn leaky(channels: usize) -> Activation {
    Activation::Prelu(vec![0.2; channels])
}

/// A residual block multiplies its input by 1.2 at least, so the head begins low.
fn rrdb(
    random: &mut Random,
    scale: usize,
    (channels, growth): (usize, usize),
    blocks: usize,
) -> Network {
    let (side, plain) = (4 / scale, Activation::None);
    let mut network = Network::unshuffled("rrdb", scale, Base::Zero, side);
    let c = channels;
    let head = random.conv(c, network.maps[PICTURE], 3, 0.2);
    let head = network.push(&[PICTURE], head, plain.clone(), &[]);
    let mut trunk = head;
    for block in 0..blocks {
        if block > 0 {
            network.begin_section();
        }
        trunk = residual_block(random, &mut network, trunk, (c, growth));
    }
    network.begin_section();
    let join = Combine::Add {
        map: head,
        scale: 1.0,
    };
    let body = random.conv(c, c, 3, 0.05);
    let mut map = network.push(&[trunk], body, plain.clone(), &[join]);
    for _ in 0..2 {
        map = network.push_up(&[map], random.conv(c, c, 3, 1.4), leaky(c));
    }
    let high = network.push(&[map], random.conv(c, c, 3, 1.4), leaky(c), &[]);
    network.push(&[high], random.conv(3, c, 3, 0.2), plain, &[]);
    network
}

fn residual_block(
    random: &mut Random,
    network: &mut Network,
    input: Map,
    (channels, growth): (usize, usize),
) -> Map {
    let add = |map| Combine::Add { map, scale: 0.2 };
    let mut x = input;
    for dense in 0..3 {
        let mut inputs = vec![x];
        for part in 0..4 {
            let conv = random.conv(growth, channels + part * growth, 3, 1.4);
            inputs.push(network.push(&inputs, conv, leaky(growth), &[]));
        }
        let last = random.conv(channels, channels + 4 * growth, 3, 0.5);
        let joined = [add(x), add(input)];
        let count = if dense == 2 { 2 } else { 1 };
        x = network.push(&inputs, last, Activation::None, &joined[..count]);
    }
    x
}

fn edsr(random: &mut Random, scale: usize, channels: usize, blocks: usize) -> Network {
    let (c, plain) = (channels, Activation::None);
    let mut network = Network::empty("edsr", scale, Base::Bilinear);
    let head = network.push(&[PICTURE], random.conv(c, 3, 3, 1.5), plain.clone(), &[]);
    let mut x = head;
    for _ in 0..blocks {
        let h = network.push(&[x], random.conv(c, c, 3, 1.4), Activation::Relu, &[]);
        let join = Combine::Add { map: x, scale: 0.3 };
        x = network.push(&[h], random.conv(c, c, 3, 1.0), plain.clone(), &[join]);
    }
    for up in 0..scale.ilog2() {
        let before = if up == 0 { plain.clone() } else { leaky(c) };
        let parts = [0; 4].map(|_| {
            let conv = random.conv(c, c, 3, 1.0);
            network.push(&[x], conv, before.clone(), &[])
        });
        let conv = random.conv(c, c, 3, 1.0);
        x = network.push_interleaved(parts, conv, leaky(c));
    }
    network.push(&[x], random.conv(3, c, 3, 0.1), plain, &[]);
    network
}

/// SplitMix64 (Steele, Lea, Flood 2014): a seed's stream is the same on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0..1.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }

    /// Mean 0, variance 1: the sum of twelve uniforms less 6 is normal enough for weights.
    fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }

    /// Weights and bias with variance `gain^2 / fan-in`.
    pub(crate) fn conv(
        &mut self,
        out: usize,
        read: usize,
        side: usize,
        gain: f32,
    ) -> (Vec<f32>, Vec<f32>) {
        let fan_in = read * side * side;
        let spread = gain / (fan_in as f32).sqrt();
        let weights = (0..out * fan_in).map(|_| spread * self.normal()).collect();
        let bias = (0..out).map(|_| 0.02 * self.normal()).collect();
        (weights, bias)
    }
}
