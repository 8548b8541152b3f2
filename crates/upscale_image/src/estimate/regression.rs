//! From features to noise and softness: two small layers, fitted by `training/upscale_training/fit_estimator.py`.

use std::sync::LazyLock;

use safetensors::SafeTensors;
use upscale_core::Estimate;

/// What the regression's outputs of 1 mean, noise by its logarithm.
const NOISE_MAX: f32 = Estimate::NOISE_MAX;
const SOFTNESS_MAX: f32 = Estimate::SOFTNESS_MAX;

static EMBEDDED: LazyLock<Option<Regression>> =
    LazyLock::new(|| Regression::read(include_bytes!("../../weights/estimate.safetensors")));

/// Weights `[outputs][inputs]` and bias of each layer; features are centred and scaled first.
pub(super) struct Regression {
    mean: Vec<f32>,
    deviation: Vec<f32>,
    layers: Vec<(Vec<f32>, Vec<f32>)>,
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
        let layer = |index: usize| {
            let weights = values(&format!("layers.{index}.weight"))?;
            Some((weights, values(&format!("layers.{index}.bias"))?))
        };
        Some(Self {
            mean: values("mean")?,
            deviation: values("deviation")?,
            layers: (0..3).map(layer).collect::<Option<_>>()?,
        })
    }

    pub(super) fn estimate(&self, features: &[f32]) -> Estimate {
        let scaled = features.iter().zip(&self.mean).zip(&self.deviation);
        let mut values: Vec<f32> = scaled.map(|((f, mean), by)| (f - mean) / by).collect();
        for (index, (weights, bias)) in self.layers.iter().enumerate() {
            let rows = weights.chunks_exact(values.len()).zip(bias);
            values = rows.map(|(row, bias)| bias + dot(row, &values)).collect();
            if index + 1 < self.layers.len() {
                values.iter_mut().for_each(|value| *value = value.max(0.0));
            }
        }
        let share = |place: usize| values.get(place).map_or(0.0, |v| v.clamp(0.0, 1.0));
        Estimate {
            noise: (share(0) * (1.0 + NOISE_MAX).log2()).exp2() - 1.0,
            softness: share(1) * SOFTNESS_MAX,
            ..Estimate::NONE
        }
    }
}

fn dot(row: &[f32], values: &[f32]) -> f32 {
    row.iter().zip(values).map(|(w, x)| w * x).sum()
}
