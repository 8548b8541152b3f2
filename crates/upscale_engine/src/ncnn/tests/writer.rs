//! Writes a network of ours as ncnn's `.param` and `.bin`.

use std::fmt::Write;

use half::f16;

use crate::network::{Activation, Base, Combine, Layer, Map, Network, PICTURE};

/// Who wrote the text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Form {
    /// A converter: every step is a layer.
    Converted,
    /// ncnn's optimizer: functions within convolutions, sums with their numbers.
    Optimized,
}

/// How the weights are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Store {
    F32,
    F16,
}

pub(super) struct Writer<'a> {
    network: &'a Network,
    form: Form,
    store: Store,
    rows: Vec<String>,
    numbers: Vec<u8>,
    blobs: usize,
    /// For every map the blobs that are still to be read, and for the repeated ones those.
    blobs_of: Vec<Vec<String>>,
    repeated_of: Vec<Vec<String>>,
}

impl<'a> Writer<'a> {
    pub(super) fn write(network: &'a Network, form: Form, store: Store) -> (String, Vec<u8>) {
        let mut writer = Self {
            network,
            form,
            store,
            rows: Vec::new(),
            numbers: Vec::new(),
            blobs: 0,
            blobs_of: vec![Vec::new(); network.maps.len()],
            repeated_of: vec![Vec::new(); network.maps.len()],
        };
        writer.picture();
        for layer in &network.layers {
            writer.layer(layer);
        }
        writer.end();
        let mut text = format!("7767517\n{} {}\n", writer.rows.len(), writer.blobs);
        for row in &writer.rows {
            writeln!(text, "{row}").unwrap();
        }
        (text, writer.numbers)
    }

    /// Adds a layer and gives its blob.
    fn row(&mut self, kind: &str, reads: &[String], parameters: &str) -> String {
        let blob = self.new_blob();
        let (count, reads) = (reads.len(), reads.join(" "));
        let row = format!("{kind:<16} n{blob} {count} 1 {reads} {blob} {parameters}");
        self.rows.push(row);
        blob
    }

    fn new_blob(&mut self) -> String {
        self.blobs += 1;
        format!("b{}", self.blobs)
    }

    /// As many blobs of one as there will be readers.
    fn split(&mut self, blob: String, readers: usize) -> Vec<String> {
        if readers < 2 {
            return vec![blob];
        }
        let blobs: Vec<String> = (0..readers).map(|_| self.new_blob()).collect();
        let row = format!("Split s{blob} 1 {readers} {blob} {}", blobs.join(" "));
        self.rows.push(row);
        blobs
    }

    fn plain(&mut self, values: &[f32]) {
        self.numbers
            .extend(values.iter().flat_map(|v| v.to_le_bytes()));
    }

    fn tagged(&mut self, values: &[f32]) {
        match self.store {
            Store::F32 => {
                self.numbers.extend([0; 4]);
                self.plain(values);
            }
            Store::F16 => {
                self.numbers.extend(0x0130_6B47_u32.to_le_bytes());
                let halves = values.iter().flat_map(|&v| f16::from_f32(v).to_le_bytes());
                self.numbers.extend(halves);
                let filled = self.numbers.len().next_multiple_of(4);
                self.numbers.resize(filled, 0);
            }
        }
    }

    fn picture(&mut self) {
        let base_reads = usize::from(self.network.base == Base::Nearest);
        let reads = self.reads(PICTURE) + base_reads;
        let mut blob = self.row("Input", &[], "");
        if self.network.mean != [0.0; 3] {
            let mean = self.row("MemoryData", &[], "0=1 1=1 2=3");
            self.plain(&self.network.mean.clone());
            blob = self.row("BinaryOp", &[blob, mean], "0=1");
        }
        if self.network.unshuffle > 1 {
            let parameters = format!("0={}", self.network.unshuffle);
            blob = self.row("Reorg", &[blob], &parameters);
        }
        self.blobs_of[PICTURE] = self.split(blob, reads);
    }

    /// How often a map is read as it is.
    fn reads(&self, map: Map) -> usize {
        let layers = self.network.layers.iter();
        let counts = layers.map(|layer| {
            let plain = layer.inputs.iter().filter(|&&input| input == map).count();
            let joined = layer
                .combine
                .iter()
                .filter(|join| join.map() == map)
                .count();
            joined + if self.is_repeated(layer) { 0 } else { plain }
        });
        counts.sum()
    }

    fn is_repeated(&self, layer: &Layer) -> bool {
        self.network.factors[layer.inputs[0]] != self.network.factors[layer.output]
    }

    fn take(&mut self, map: Map) -> String {
        self.blobs_of[map].pop().unwrap()
    }

    fn layer(&mut self, layer: &Layer) {
        let inputs: Vec<String> = if self.is_repeated(layer) {
            let inputs = layer.inputs.iter();
            inputs
                .map(|&map| self.repeated_of[map].pop().unwrap())
                .collect()
        } else {
            layer.inputs.iter().map(|&map| self.take(map)).collect()
        };
        let input = match inputs.len() {
            1 => inputs[0].clone(),
            _ => self.row("Concat", &inputs, "0=0"),
        };
        let fused = match &layer.activation {
            Activation::Relu if self.form == Form::Optimized => " 9=1",
            Activation::Prelu(slopes) if self.is_fused(slopes) => {
                &format!(" 9=2 -23310=1,{:e}", slopes[0])
            }
            _ => "",
        };
        let (out, side) = (layer.bias.len(), layer.side);
        let (pad, count) = (side / 2, layer.weights.len());
        let parameters = format!("0={out} 1={side} 4={pad} 5=1 6={count}{fused}");
        let blob = self.row("Convolution", &[input], &parameters);
        self.tagged(&layer.weights);
        self.plain(&layer.bias);
        let blob = self.activate(layer, blob);
        let blob = layer
            .combine
            .iter()
            .fold(blob, |blob, &join| self.join(join, blob));
        let plain = self.reads(layer.output);
        let enlarged = self
            .network
            .layers
            .iter()
            .filter(|reader| self.is_repeated(reader) && reader.inputs.contains(&layer.output));
        let enlarged = enlarged.count();
        let mut blobs = self.split(blob, plain + usize::from(enlarged > 0));
        if enlarged > 0 {
            let small = blobs.pop().unwrap();
            let repeated = self.row("Interp", &[small], "0=1 1=2.000000e+00 2=2.000000e+00");
            self.repeated_of[layer.output] = self.split(repeated, enlarged);
        }
        self.blobs_of[layer.output] = blobs;
    }

    fn is_fused(&self, slopes: &[f32]) -> bool {
        self.form == Form::Optimized && slopes.iter().all(|slope| *slope == slopes[0])
    }

    fn activate(&mut self, layer: &Layer, blob: String) -> String {
        match &layer.activation {
            Activation::Relu if self.form == Form::Converted => self.row("ReLU", &[blob], ""),
            Activation::Prelu(slopes) if self.is_fused(slopes) => blob,
            Activation::Prelu(slopes) if slopes.iter().all(|slope| *slope == slopes[0]) => {
                let parameters = format!("0={:e}", slopes[0]);
                self.row("ReLU", &[blob], &parameters)
            }
            Activation::Prelu(slopes) => {
                let parameters = format!("0={}", slopes.len());
                let blob = self.row("PReLU", &[blob], &parameters);
                self.plain(slopes);
                blob
            }
            Activation::Silu if self.form == Form::Optimized => self.row("Swish", &[blob], ""),
            Activation::Silu => {
                let both = self.split(blob, 2);
                let sigmoid = self.row("Sigmoid", &both[..1], "");
                self.row("BinaryOp", &[both[1].clone(), sigmoid], "0=2")
            }
            _ => blob,
        }
    }

    fn join(&mut self, join: Combine, blob: String) -> String {
        let other = self.take(join.map());
        match join {
            Combine::Add { scale: 1.0, .. } => self.row("BinaryOp", &[other, blob], "0=0"),
            Combine::Add { scale, .. } if self.form == Form::Optimized => {
                let parameters = format!("0=1 -23301=2,{scale:e},1.000000e+00");
                self.row("Eltwise", &[blob, other], &parameters)
            }
            Combine::Add { scale, .. } => {
                let parameters = format!("0=2 1=1 2={scale:e}");
                let times = self.row("BinaryOp", &[blob], &parameters);
                self.row("BinaryOp", &[times, other], "0=0")
            }
            Combine::Gate { .. } => {
                let both = self.split(blob, 2);
                let sigmoid = self.row("Sigmoid", &both[..1], "");
                let gate = self.row("BinaryOp", &[sigmoid], "0=1 1=1 2=5.000000e-01");
                let sum = self.row("BinaryOp", &[both[1].clone(), other], "0=0");
                self.row("BinaryOp", &[sum, gate], "0=2")
            }
        }
    }

    fn end(&mut self) {
        let last = self.network.maps.len() - 1;
        let mut blob = self.take(last);
        if self.network.last_shuffle() > 1 {
            let parameters = format!("0={}", self.network.last_shuffle());
            blob = self.row("PixelShuffle", &[blob], &parameters);
        }
        if self.network.base == Base::Nearest {
            let picture = self.take(PICTURE);
            let scale = self.network.scale;
            let parameters = format!("0=1 1={scale} 2={scale}");
            let base = self.row("Interp", &[picture], &parameters);
            self.row("BinaryOp", &[blob, base], "0=0");
        }
    }
}
