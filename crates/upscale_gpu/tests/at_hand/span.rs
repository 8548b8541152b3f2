//! A SPAN file as people bring it, with seeded weights: our own networks take no mean off their sources, SPAN does.

use std::{collections::HashMap, sync::Arc};

use safetensors::{Dtype, tensor::TensorView};
use upscale_engine::{Model, Network};

const CHANNELS: usize = 8;

/// SPAN of 8 channels at 2x.
pub(crate) fn span() -> Arc<Network> {
    let mut shapes = vec![("conv_1.eval_conv".to_owned(), [CHANNELS, 3, 3, 3])];
    for block in 1..=6 {
        for part in 1..=3 {
            let name = format!("block_{block}.c{part}_r.eval_conv");
            shapes.push((name, [CHANNELS, CHANNELS, 3, 3]));
        }
    }
    shapes.push(("conv_2.eval_conv".to_owned(), [CHANNELS, CHANNELS, 3, 3]));
    shapes.push(("conv_cat".to_owned(), [CHANNELS, 4 * CHANNELS, 1, 1]));
    shapes.push(("upsampler.0".to_owned(), [12, CHANNELS, 3, 3]));
    let mut state = 3_u32;
    let mut tensors = HashMap::new();
    for (name, shape) in shapes {
        let fan_in: usize = shape[1..].iter().product();
        // The source comes 255 times as large.
        let spread = if name.starts_with("conv_1.") {
            0.01
        } else {
            1.5
        };
        let spread = spread / (fan_in as f32).sqrt();
        let mut random = |count: usize| -> Vec<u8> {
            let numbers = (0..count).map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                spread * ((state >> 8) as f32 / (1 << 23) as f32 - 1.0)
            });
            numbers.flat_map(f32::to_le_bytes).collect()
        };
        let weights = random(shape.iter().product());
        tensors.insert(format!("{name}.weight"), (shape.to_vec(), weights));
        tensors.insert(format!("{name}.bias"), (vec![shape[0]], random(shape[0])));
    }
    let views = tensors.iter().map(|(name, (shape, bytes))| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap();
        (name, view)
    });
    let file = safetensors::serialize(views, None).unwrap();
    Arc::new(Model::read(&file).unwrap().network)
}
