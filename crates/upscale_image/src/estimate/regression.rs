//! From features to noise and softness: two small layers, and one that takes softness from pictures whose edges
//! overshoot; fitted by `training/upscale_training/fit_estimator.py`.

use std::sync::LazyLock;

use safetensors::SafeTensors;
use upscale_core::Estimate;

/// What the regression's outputs of 1 mean, noise by its logarithm.
const NOISE_MAX: f32 = Estimate::NOISE_MAX;
const SOFTNESS_MAX: f32 = Estimate::SOFTNESS_MAX;

static EMBEDDED: LazyLock<Option<Regression>> =
    LazyLock::new(|| Regression::read(include_bytes!("../../weights/estimate.safetensors")));

/// Weights `[outputs][inputs]` and bias of a layer.
type Layer = (Vec<f32>, Vec<f32>);

/// Features are centred and scaled first. `layers` read all but those of overshoots, which come last.
pub(super) struct Regression {
    mean: Vec<f32>,
    deviation: Vec<f32>,
    layers: Vec<Layer>,
    sharpened: Vec<Layer>,
}

impl Regression {
    /// The one that ships; a test holds that it can be read.
    pub(super) fn embedded() -> Option<&'static Self> {
        EMBEDDED.as_ref()
    }

    fn read(file: &[u8]) -> Option<Self> {
        let tensors = SafeTensors::deserialize(file).ok()?;
        let values = |name: &str| {
            let bytes = tensors.tensor(name).ok()?.data().chunks_exact(4);
            Some(
                bytes
                    .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
                    .collect::<Vec<_>>(),
            )
        };
        let chain = |name: &str, count: usize| {
            let layer = |index: usize| {
                let weights = values(&format!("{name}.{index}.weight"))?;
                Some((weights, values(&format!("{name}.{index}.bias"))?))
            };
            (0..count).map(layer).collect::<Option<Vec<_>>>()
        };
        Some(Self {
            mean: values("mean")?,
            deviation: values("deviation")?,
            layers: chain("layers", 3)?,
            sharpened: chain("sharpened", 3)?,
        })
    }

    pub(super) fn estimate(&self, features: &[f32]) -> Estimate {
        let scaled = features.iter().zip(&self.mean).zip(&self.deviation);
        let values: Vec<f32> = scaled.map(|((f, mean), by)| (f - mean) / by).collect();
        let found = through(&self.layers, &values);
        let overstated = through(&self.sharpened, &values);
        let at = |outputs: &[f32], place: usize| outputs.get(place).copied().unwrap_or(0.0);
        let softness = at(&found, 1) - at(&overstated, 0).max(0.0);
        Estimate {
            noise: (at(&found, 0).clamp(0.0, 1.0) * (1.0 + NOISE_MAX).log2()).exp2() - 1.0,
            softness: softness.clamp(0.0, 1.0) * SOFTNESS_MAX,
            ..Estimate::NONE
        }
    }
}

/// What a chain of layers makes of as many of `values` as its first one reads; nothing below zero passes between them.
fn through(layers: &[Layer], values: &[f32]) -> Vec<f32> {
    let mut values = values.to_vec();
    for (index, (weights, bias)) in layers.iter().enumerate() {
        values.truncate(weights.len() / bias.len());
        let rows = weights.chunks_exact(values.len()).zip(bias);
        values = rows.map(|(row, bias)| bias + dot(row, &values)).collect();
        if index + 1 < layers.len() {
            values.iter_mut().for_each(|value| *value = value.max(0.0));
        }
    }
    values
}

fn dot(row: &[f32], values: &[f32]) -> f32 {
    row.iter().zip(values).map(|(w, x)| w * x).sum()
}
