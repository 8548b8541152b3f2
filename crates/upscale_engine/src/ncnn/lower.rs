//! A graph of small steps becomes a network of our layers, each of which does what several of them did: a convolution,
//! the function of its sums, what is added to them. A step that no convolution can take in gets a 1x1 of its own.

mod sections;
mod value;

use self::sections::{cut_into_sections, family};
use self::value::{Maps, Value, line, multiply, per_colour, repeat, shift};
use super::graph::{Does, Function, Graph, Node};
use super::numbers::Numbers;
use crate::architecture::{Architecture, CHANNELS_MAX, check_scale};
use crate::error::{ModelError, refuse};
use crate::network::{Activation, Base, Combine, Map, Network, PICTURE};

/// Maps that a layer may read; a dense block has 5.
const SIDE_BY_SIDE_MAX: usize = 32;

/// The network that a graph is, and what people call it.
pub(super) fn lower(
    graph: Graph,
    numbers: &mut Numbers<'_>,
) -> Result<(Architecture, Network), ModelError> {
    let side = squares(&graph)?;
    let mut lowering = Lowering {
        network: Network::unshuffled("ncnn", 1, Base::Zero, side),
        is_mean_known: false,
        numbers,
    };
    let output = graph.output;
    let mut values: Vec<Option<Value>> = Vec::with_capacity(graph.nodes.len());
    for (id, mut node) in graph.nodes.into_iter().enumerate() {
        if node.uses == 0 {
            values.push(None);
            continue;
        }
        if matches!(node.does, Does::Clip) && id != output {
            return Err(node.refuse("limits to 0..1 what is not the result"));
        }
        let inputs: Option<Vec<Value>> = node.inputs.iter().map(|&i| values[i].clone()).collect();
        let inputs = inputs.unwrap_or_default();
        let mut value = lowering.node(&mut node, inputs)?;
        if let Value::Maps(maps) = &mut value {
            maps.is_open &= node.uses == 1;
        }
        values.push(Some(value));
    }
    let Some(Some(value)) = values.get(output).cloned() else {
        return Err(refuse("no layer makes a picture"));
    };
    lowering.finish(value)
}

/// Side of the squares that the network reads; they are made of the picture itself.
fn squares(graph: &Graph) -> Result<usize, ModelError> {
    let used = graph.nodes.iter().filter(|node| node.uses > 0);
    let mut sides = used.filter_map(|node| match node.does {
        Does::Unshuffle(side) => Some(side),
        _ => None,
    });
    match (sides.next(), sides.next()) {
        (None, _) => Ok(1),
        (Some(side @ (1 | 2 | 4)), None) => Ok(side),
        (Some(side), None) => Err(refuse(format!(
            "squares of {side} pixels; 2 and 4 are supported"
        ))),
        (Some(_), Some(_)) => Err(refuse(
            "squares of pixels are made twice; once is supported",
        )),
    }
}

impl Node {
    fn refuse(&self, reason: &str) -> ModelError {
        refuse(format!("{} {reason}", self.name))
    }
}

struct Lowering<'a, 'b> {
    network: Network,
    is_mean_known: bool,
    numbers: &'a mut Numbers<'b>,
}

impl Lowering<'_, '_> {
    fn node(&mut self, node: &mut Node, mut inputs: Vec<Value>) -> Result<Value, ModelError> {
        let one = inputs.pop();
        let other = inputs.pop();
        match (std::mem::replace(&mut node.does, Does::Concat), other, one) {
            (Does::Picture, ..) => Ok(Value::Picture {
                mean: [0.0; 3],
                times: [1.0; 3],
            }),
            (Does::Constant(numbers), ..) => Ok(Value::Constant(numbers)),
            (Does::Concat, Some(other), Some(one)) => {
                inputs.extend([other, one]);
                self.concat(node, inputs)
            }
            (Does::Concat | Does::Clip, None, Some(one)) => Ok(one),
            (
                Does::Conv {
                    weights,
                    bias,
                    side,
                    then,
                },
                None,
                Some(one),
            ) => self.conv(node, one, (weights, bias, side), then),
            (Does::Apply(function), None, Some(one)) => self.apply(node, one, &function),
            (Does::Line { times, plus }, None, Some(one)) => line(node, one, times, plus),
            (Does::Add(times), Some(one), Some(other)) => self.add(node, one, other, times),
            (Does::Multiply, Some(one), Some(other)) => multiply(node, one, other),
            (Does::Gate, Some(v), Some(h)) => self.gate(node, v, h),
            (Does::Repeat(side), None, Some(one)) => repeat(node, one, side),
            (Does::Shuffle(side), None, Some(one)) => {
                let map = self.single(node, one)?.maps[0];
                Ok(Value::Shuffled(map, side))
            }
            (Does::Unshuffle(_), None, Some(Value::Picture { mean, times })) => {
                if mean != [0.0; 3] || times != [1.0; 3] {
                    return Err(node.refuse("makes squares of other numbers than the picture's"));
                }
                Ok(Value::Squares)
            }
            _ => Err(node.refuse("stands where it is not supported")),
        }
    }

    fn channels(&self, maps: &Maps) -> usize {
        maps.maps.iter().map(|&map| self.network.maps[map]).sum()
    }

    fn factor(&self, maps: &Maps) -> usize {
        self.network.factors[maps.maps[0]] * if maps.is_repeated { 2 } else { 1 }
    }

    fn conv(
        &mut self,
        node: &Node,
        input: Value,
        (mut weights, bias, side): (Vec<f32>, Vec<f32>, usize),
        then: Option<Function>,
    ) -> Result<Value, ModelError> {
        let area = side * side;
        let maps = match input {
            Value::Picture { mean, times } => {
                self.set_mean(node, mean)?;
                for (kernel, channel) in weights.chunks_exact_mut(area).zip((0..3).cycle()) {
                    kernel.iter_mut().for_each(|w| *w *= times[channel]);
                }
                Maps::open(PICTURE)
            }
            Value::Squares => {
                self.set_mean(node, [0.0; 3])?;
                Maps::open(PICTURE)
            }
            Value::Maps(maps) => {
                weights.iter_mut().for_each(|w| *w *= maps.times);
                maps
            }
            _ => return Err(node.refuse("reads a picture that is enlarged already")),
        };
        let (read, given) = (weights.len() / bias.len() / area, self.channels(&maps));
        if read != given {
            return Err(node.refuse(&format!("reads {read} channels and is given {given}")));
        }
        if side != 3 && (maps.maps == [PICTURE] || maps.is_repeated) {
            return Err(node.refuse("is 1x1 over the picture or an enlarged map; 3x3 is supported"));
        }
        let out = bias.len();
        let then = activation(node, then.as_ref(), out)?;
        let conv = (weights, bias);
        let map = if maps.is_repeated {
            self.network.push_up(&maps.maps, conv, then)
        } else {
            self.network.push(&maps.maps, conv, then, &[])
        };
        Ok(Value::Maps(Maps::open(map)))
    }

    /// All that read the picture take the same mean off.
    fn set_mean(&mut self, node: &Node, mean: [f32; 3]) -> Result<(), ModelError> {
        if self.is_mean_known && self.network.mean != mean {
            return Err(node.refuse("takes another mean off the picture than a layer before it"));
        }
        (self.network.mean, self.is_mean_known) = (mean, true);
        Ok(())
    }

    fn concat(&mut self, node: &Node, inputs: Vec<Value>) -> Result<Value, ModelError> {
        let mut all = Vec::new();
        let mut first: Option<Maps> = None;
        for input in inputs {
            let Value::Maps(mut maps) = input else {
                return Err(node.refuse("joins what is no map of a layer"));
            };
            if maps.times != 1.0 {
                maps = self.one_by_one(node, &[maps], 1)?;
            }
            let like = first.get_or_insert_with(|| maps.clone());
            let is_alike = like.is_repeated == maps.is_repeated
                && self.network.factors[like.maps[0]] == self.network.factors[maps.maps[0]];
            if !is_alike {
                return Err(node.refuse("joins maps of different sizes"));
            }
            all.extend(maps.maps);
            if all.len() > SIDE_BY_SIDE_MAX {
                return Err(node.refuse(&format!("joins more than {SIDE_BY_SIDE_MAX} maps")));
            }
        }
        let Some(first) = first else {
            return Err(node.refuse("joins nothing"));
        };
        Ok(Value::Maps(Maps {
            maps: all,
            is_open: false,
            ..first
        }))
    }

    /// One map, in the size it is used in, times 1; a layer of its own if need be.
    fn single(&mut self, node: &Node, value: Value) -> Result<Maps, ModelError> {
        let Value::Maps(maps) = value else {
            return Err(node.refuse("is not done to the map of a layer"));
        };
        if maps.maps.len() == 1 && maps.times == 1.0 && !maps.is_repeated {
            return Ok(maps);
        }
        let side = if maps.is_repeated { 3 } else { 1 };
        self.one_by_one(node, &[maps], side)
    }

    /// One map, open: what its layer does may still be added to.
    fn open(&mut self, node: &Node, value: Value) -> Result<Maps, ModelError> {
        let maps = self.single(node, value)?;
        if maps.is_open {
            return Ok(maps);
        }
        self.one_by_one(node, &[maps], 1)
    }

    /// A layer that only hands on the sum of its inputs, each times its number.
    fn one_by_one(
        &mut self,
        node: &Node,
        inputs: &[Maps],
        side: usize,
    ) -> Result<Maps, ModelError> {
        let out = self.channels(&inputs[0]);
        if out > CHANNELS_MAX {
            return Err(node.refuse(&format!("has {out} channels, at most {CHANNELS_MAX}")));
        }
        let read = out * inputs.len();
        let area = side * side;
        self.numbers.charge(out * read * area)?;
        let mut weights = vec![0.0; out * read * area];
        for (index, maps) in inputs.iter().enumerate() {
            for channel in 0..out {
                let at = (channel * read + index * out + channel) * area;
                weights[at + area / 2] = maps.times;
            }
        }
        let maps: Vec<Map> = inputs.iter().flat_map(|maps| maps.maps.clone()).collect();
        if maps.contains(&PICTURE) {
            return Err(node.refuse("is not done to the map of a layer"));
        }
        let conv = (weights, vec![0.0; out]);
        let map = if inputs[0].is_repeated {
            self.network.push_up(&maps, conv, Activation::None)
        } else {
            self.network.push(&maps, conv, Activation::None, &[])
        };
        Ok(Maps::open(map))
    }

    fn apply(
        &mut self,
        node: &Node,
        value: Value,
        function: &Function,
    ) -> Result<Value, ModelError> {
        let mut maps = self.open(node, value)?;
        let (then, joined) = self.ends_of(maps.maps[0]);
        if *then != Activation::None || !joined.is_empty() {
            maps = self.one_by_one(node, &[maps], 1)?;
        }
        let out = self.channels(&maps);
        *self.ends_of(maps.maps[0]).0 = activation(node, Some(function), out)?;
        Ok(Value::Maps(maps))
    }

    /// The function and what is joined in the layer that writes a map.
    fn ends_of(&mut self, map: Map) -> (&mut Activation, &mut Vec<Combine>) {
        // Every layer writes the map after the one before it, and map 0 is the picture.
        let layer = &mut self.network.layers[map - 1];
        (&mut layer.activation, &mut layer.combine)
    }

    fn add(
        &mut self,
        node: &Node,
        a: Value,
        b: Value,
        times: [f32; 2],
    ) -> Result<Value, ModelError> {
        match (a, b) {
            (Value::Picture { mean, times: by }, Value::Constant(numbers)) => {
                let Some(numbers) = per_colour(&numbers) else {
                    return Err(node.refuse("adds other than one number for each colour"));
                };
                shift(node, (mean, by), numbers.map(|n| n * times[1]), times[0])
            }
            (Value::Maps(a), Value::Maps(b)) => self.add_maps(node, a, b, times),
            (made @ (Value::Shuffled(..) | Value::Maps(_)), source)
            | (source, made @ (Value::Shuffled(..) | Value::Maps(_)))
                if times == [1.0, 1.0] =>
            {
                self.add_base(node, made, &source)
            }
            _ => Err(node.refuse("adds what cannot be added here")),
        }
    }

    fn add_maps(
        &mut self,
        node: &Node,
        mut a: Maps,
        mut b: Maps,
        times: [f32; 2],
    ) -> Result<Value, ModelError> {
        (a.times, b.times) = (a.times * times[0], b.times * times[1]);
        let shape = |maps: &Maps| (self.channels(maps), self.factor(maps));
        let (one, other) = (shape(&a), shape(&b));
        if one != other {
            return Err(node.refuse(&format!(
                "adds maps of {} and {} channels, {} and {} times as large",
                one.0, other.0, one.1, other.1
            )));
        }
        if a.is_repeated != b.is_repeated {
            return Err(node.refuse("adds an enlarged map to another"));
        }
        for (carrier, joined) in [(&a, &b), (&b, &a)] {
            let (&[map], &[other]) = (&carrier.maps[..], &joined.maps[..]) else {
                continue;
            };
            if carrier.is_open && !carrier.is_repeated && joined.times == 1.0 && other < map {
                let scale = carrier.times;
                let join = Combine::Add { map: other, scale };
                self.ends_of(map).1.push(join);
                return Ok(Value::Maps(Maps::open(map)));
            }
        }
        let side = if a.is_repeated { 3 } else { 1 };
        self.one_by_one(node, &[a, b], side).map(Value::Maps)
    }

    /// The picture, repeated as often as the last map's channels spread.
    fn add_base(&mut self, node: &Node, made: Value, source: &Value) -> Result<Value, ModelError> {
        let (map, side) = match made {
            Value::Shuffled(map, side) => (map, side),
            maps => (self.single(node, maps)?.maps[0], 1),
        };
        let repeats = match source {
            Value::Repeated(side) => *side,
            Value::Picture { mean, times } if *mean == [0.0; 3] && *times == [1.0; 3] => 1,
            _ => 0,
        };
        if repeats != side * self.network.factors[map] || self.network.unshuffle > 1 {
            return Err(node.refuse("adds the picture in another size than the result's"));
        }
        self.network.base = Base::Nearest;
        Ok(Value::Finished(map, side))
    }

    fn gate(&mut self, node: &Node, v: Value, h: Value) -> Result<Value, ModelError> {
        let h = self.single(node, h)?;
        // The sigmoid and the sum were two readers; the gate is one.
        let mut v = self.open(node, v)?;
        let (then, joined) = self.ends_of(v.maps[0]);
        if *then != Activation::None || !joined.is_empty() || h.maps[0] > v.maps[0] {
            v = self.one_by_one(node, &[v], 1)?;
        }
        if (self.channels(&v), self.factor(&v)) != (self.channels(&h), self.factor(&h)) {
            return Err(node.refuse("gates a map of another size"));
        }
        let join = Combine::Gate { map: h.maps[0] };
        self.ends_of(v.maps[0]).1.push(join);
        Ok(Value::Maps(v))
    }

    fn finish(mut self, value: Value) -> Result<(Architecture, Network), ModelError> {
        let (mut map, side) = match value {
            Value::Shuffled(map, side) | Value::Finished(map, side) => (map, side),
            Value::Maps(maps) if maps.maps.len() == 1 => (maps.maps[0], 1),
            _ => return Err(refuse("the result is no picture that a layer makes")),
        };
        let channels = self.network.maps[map];
        if channels != 3 * side * side {
            return Err(refuse(format!(
                "the result has {channels} channels, not 3 times the square of {side}: no RGB"
            )));
        }
        if let Some(last) = self.network.layers.get(map - 1) {
            let is_last = map + 1 == self.network.maps.len();
            let is_plain = last.combine.is_empty() && last.side == 3 && last.inputs != [PICTURE];
            if !is_last || !is_plain {
                let node = Node {
                    name: "the result".to_owned(),
                    does: Does::Concat,
                    inputs: Vec::new(),
                    uses: 1,
                };
                map = self.one_by_one(&node, &[Maps::open(map)], 3)?.maps[0];
            }
        }
        let network = &mut self.network;
        let grown = network.factors[map] * side;
        if !grown.is_multiple_of(network.unshuffle) {
            return Err(refuse("it makes pictures smaller"));
        }
        let architecture = family(network);
        network.scale = check_scale(architecture, grown / network.unshuffle)?;
        network.name = format!("ncnn-x{}", network.scale);
        cut_into_sections(network);
        Ok((architecture, self.network))
    }
}

fn activation(
    node: &Node,
    function: Option<&Function>,
    channels: usize,
) -> Result<Activation, ModelError> {
    Ok(match function {
        None => Activation::None,
        Some(Function::Relu) => Activation::Relu,
        Some(Function::Silu) => Activation::Silu,
        Some(Function::Leaky(slope)) => Activation::Prelu(vec![*slope; channels]),
        Some(Function::Prelu(slopes)) if slopes.len() == 1 => {
            Activation::Prelu(vec![slopes[0]; channels])
        }
        Some(Function::Prelu(slopes)) if slopes.len() == channels => {
            Activation::Prelu(slopes.clone())
        }
        Some(Function::Prelu(slopes)) => {
            let count = slopes.len();
            return Err(node.refuse(&format!("has {count} slopes for {channels} channels")));
        }
    })
}
