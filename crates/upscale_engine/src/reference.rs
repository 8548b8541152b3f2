//! The definition of every network: plain loops over whole maps in `f64`. Slow on purpose; everything faster is
//! compared with it. Reached in the product only by `UPSCALE_CPU=reference`.

use upscale_core::Pixels;

use crate::bicubic::{Phase, linear_phases, phases, replicated};
use crate::network::{Activation, Base, Combine, Layer, Map, Network, PICTURE};
use crate::run::Cancelled;

/// A map: `[row][column][channel]`.
struct Plane {
    width: usize,
    height: usize,
    channels: usize,
    values: Vec<f64>,
}

impl Plane {
    fn new(width: usize, height: usize, channels: usize) -> Self {
        Self {
            width,
            height,
            channels,
            values: vec![0.0; width * height * channels],
        }
    }

    fn at(&self, x: usize, y: usize) -> &[f64] {
        let start = (y * self.width + x) * self.channels;
        &self.values[start..start + self.channels]
    }

    fn at_mut(&mut self, x: usize, y: usize) -> &mut [f64] {
        let start = (y * self.width + x) * self.channels;
        &mut self.values[start..start + self.channels]
    }
}

/// The whole output, interleaved, clamped to 0..1, with as many channels as the source (1 or 3).
/// A gray source is run as RGB with three equal channels; its output is the mean of the three.
/// What is given once `cancelled` says true means nothing.
pub(crate) fn upscale(network: &Network, source: &Pixels, cancelled: Cancelled<'_>) -> Vec<f64> {
    let picture = rgb(source);
    let last = run_layers(network, unshuffle(network, &picture), cancelled);
    let mut output = shuffle_onto_base(network, &picture, &last);
    output.iter_mut().for_each(|v| *v = v.clamp(0.0, 1.0));
    if source.channels() == 1 {
        output = output.chunks_exact(3).map(mean).collect();
    }
    output
}

fn mean(rgb: &[f64]) -> f64 {
    (rgb[0] + rgb[1] + rgb[2]) / 3.0
}

fn rgb(source: &Pixels) -> Plane {
    let mut picture = Plane::new(source.width(), source.height(), 3);
    let repeat = 3 / source.channels();
    let samples = source.samples().iter();
    let repeated = samples.flat_map(|&v| std::iter::repeat_n(f64::from(v), repeat));
    picture.values = repeated.collect();
    picture
}

/// Map 0: the mean taken off, squares of pixels side by side in the channels, `c * u * u + dy * u + dx`.
fn unshuffle(network: &Network, picture: &Plane) -> Plane {
    let u = network.unshuffle;
    let (width, height) = (picture.width.div_ceil(u), picture.height.div_ceil(u));
    let mut map = Plane::new(width, height, 3 * u * u);
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        for (channel, value) in map.at_mut(x, y).iter_mut().enumerate() {
            let (colour, dy, dx) = (channel / (u * u), channel / u % u, channel % u);
            let column = (x * u + dx).min(picture.width - 1);
            let row = (y * u + dy).min(picture.height - 1);
            *value = picture.at(column, row)[colour] - f64::from(network.mean[colour]);
        }
    }
    map
}

fn run_layers(network: &Network, picture: Plane, cancelled: Cancelled<'_>) -> Plane {
    let mut maps: Vec<Option<Plane>> = network.maps.iter().map(|_| None).collect();
    let (w, h) = (picture.width, picture.height);
    maps[PICTURE] = Some(picture);
    for (index, layer) in network.layers.iter().enumerate() {
        let factor = network.factors[layer.output];
        let mut output = convolve((network, layer), &maps, w * factor, h * factor, cancelled);
        activate(&layer.activation, &mut output);
        for combine in &layer.combine {
            join(*combine, &mut output, &maps);
        }
        maps[layer.output] = Some(output);
        drop_unread(network, index, &mut maps);
    }
    let last = maps.pop().flatten();
    last.unwrap_or_else(|| Plane::new(w, h, network.maps[PICTURE]))
}

/// Maps that no later layer reads are given back: a network of 40 layers must not hold 40 maps.
fn drop_unread(network: &Network, done: usize, maps: &mut [Option<Plane>]) {
    let last = network.maps.len() - 1;
    for (map, plane) in maps.iter_mut().enumerate().take(last) {
        let read = network.layers[done + 1..].iter().any(|layer| {
            layer.inputs.contains(&map) || layer.combine.iter().any(|c| c.map() == map)
        });
        if !read {
            *plane = None;
        }
    }
}

fn convolve(
    (network, layer): (&Network, &Layer),
    maps: &[Option<Plane>],
    width: usize,
    height: usize,
    cancelled: Cancelled<'_>,
) -> Plane {
    let mut output = Plane::new(width, height, layer.bias.len());
    for pixel in output.values.chunks_exact_mut(layer.bias.len()) {
        for (value, &bias) in pixel.iter_mut().zip(&layer.bias) {
            *value = f64::from(bias);
        }
    }
    let output_of = &mut output;
    if layer.is_interleaved {
        if let Some(input) = interleaved(&layer.inputs, maps) {
            accumulate((network, layer), 0, &input, output_of, cancelled);
        }
        return output;
    }
    let mut first_channel = 0;
    for &map in &layer.inputs {
        if let Some(input) = &maps[map] {
            let place = (network, layer);
            accumulate(place, first_channel, input, output_of, cancelled);
            first_channel += input.channels;
        }
    }
    output
}

/// Four maps as one of twice their width and height: see [`Layer::is_interleaved`].
fn interleaved(inputs: &[Map], maps: &[Option<Plane>]) -> Option<Plane> {
    let parts: Option<Vec<&Plane>> = inputs.iter().map(|&map| maps[map].as_ref()).collect();
    let parts = parts?;
    let first = parts.first()?;
    let mut whole = Plane::new(2 * first.width, 2 * first.height, first.channels);
    for (y, x) in (0..whole.height).flat_map(|y| (0..2 * first.width).map(move |x| (y, x))) {
        let part = parts[y % 2 * 2 + x % 2];
        whole.at_mut(x, y).copy_from_slice(part.at(x / 2, y / 2));
    }
    Some(whole)
}

/// Adds what one input map contributes; outside the picture the input is zero. A smaller map's pixels are repeated.
fn accumulate(
    (network, layer): (&Network, &Layer),
    first_channel: usize,
    input: &Plane,
    output: &mut Plane,
    cancelled: Cancelled<'_>,
) {
    let read = network.read_channels(layer);
    let (side, pad) = (layer.side, layer.side / 2);
    let taps = by_tap(layer, read);
    let out = output.channels;
    let repeat = output.width / input.width;
    for y in 0..output.height {
        for x in 0..output.width {
            // 256 pixels of 64 x 64 channels are some 10 ms.
            if x % 256 == 0 && cancelled() {
                return;
            }
            for (ky, kx) in (0..side).flat_map(|ky| (0..side).map(move |kx| (ky, kx))) {
                let (iy, ix) = ((y + ky).wrapping_sub(pad), (x + kx).wrapping_sub(pad));
                if iy >= output.height || ix >= output.width {
                    continue;
                }
                let start = ((ky * side + kx) * read + first_channel) * out;
                let weights = taps[start..start + input.channels * out].chunks_exact(out);
                let sums = output.at_mut(x, y);
                let pixel = input.at(ix / repeat, iy / repeat);
                for (&value, row) in pixel.iter().zip(weights) {
                    for (sum, &weight) in sums.iter_mut().zip(row) {
                        *sum += value * weight;
                    }
                }
            }
        }
    }
}

/// `[row][column][input channel][output channel]`, so that the innermost loop runs over memory in order.
fn by_tap(layer: &Layer, read: usize) -> Vec<f64> {
    let (out, area) = (layer.bias.len(), layer.side * layer.side);
    let mut taps = vec![0.0; layer.weights.len()];
    for (index, &weight) in layer.weights.iter().enumerate() {
        let (o, i, tap) = (index / (read * area), index / area % read, index % area);
        taps[(tap * read + i) * out + o] = f64::from(weight);
    }
    taps
}

fn sigmoid(v: f64) -> f64 {
    1.0 / (1.0 + (-v).exp())
}

fn activate(activation: &Activation, plane: &mut Plane) {
    let channels = plane.channels;
    for (index, v) in plane.values.iter_mut().enumerate() {
        *v = match activation {
            Activation::None => *v,
            Activation::Relu => v.max(0.0),
            Activation::Prelu(slopes) if *v < 0.0 => *v * f64::from(slopes[index % channels]),
            Activation::Prelu(_) => *v,
            Activation::Silu => *v * sigmoid(*v),
            Activation::Mish => *v * v.exp().ln_1p().tanh(),
        };
    }
}

fn join(combine: Combine, plane: &mut Plane, maps: &[Option<Plane>]) {
    let Some(other) = &maps[combine.map()] else {
        return;
    };
    for (v, &h) in plane.values.iter_mut().zip(&other.values) {
        *v = match combine {
            Combine::Add { scale, .. } => *v * f64::from(scale) + h,
            Combine::Gate { .. } => (*v + h) * (sigmoid(*v) - 0.5),
        };
    }
}

/// PyTorch's pixel shuffle (channel `c * s * s + dy * s + dx`) added to the base.
fn shuffle_onto_base(network: &Network, picture: &Plane, last: &Plane) -> Vec<f64> {
    let (scale, side) = (network.scale, network.last_shuffle());
    let mut output = Plane::new(picture.width * scale, picture.height * scale, 3);
    for y in 0..output.height {
        for x in 0..output.width {
            let correction = last.at(x / side, y / side);
            for c in 0..3 {
                let channel = (c * side + y % side) * side + x % side;
                let value = base(network, picture, x, y, c) + correction[channel];
                output.at_mut(x, y)[c] = value;
            }
        }
    }
    output.values
}

fn base(network: &Network, picture: &Plane, x: usize, y: usize, channel: usize) -> f64 {
    let scale = network.scale;
    match network.base {
        Base::Zero => 0.0,
        Base::Nearest => picture.at(x / scale, y / scale)[channel],
        Base::Bicubic => interpolated(picture, &phases(scale), x, y, channel),
        Base::Bilinear => interpolated(picture, &linear_phases(scale), x, y, channel),
    }
}

fn interpolated(picture: &Plane, phases: &[Phase], x: usize, y: usize, channel: usize) -> f64 {
    let scale = phases.len();
    let (across, down) = (phases[x % scale], phases[y % scale]);
    let mut sum = 0.0;
    for (row, &weight_y) in (0..).zip(&down.taps) {
        let iy = replicated((y / scale) as isize + down.first + row, picture.height);
        for (column, &weight_x) in (0..).zip(&across.taps) {
            let ix = replicated((x / scale) as isize + across.first + column, picture.width);
            sum += weight_y * weight_x * picture.at(ix, iy)[channel];
        }
    }
    sum
}
