//! A model file as someone might bring it.

use safetensors::tensor::{Dtype, TensorView, serialize};

/// A Compact network of zeros as a file, 4 channels, one convolution between the first and the last.
pub fn compact(scale: usize) -> Vec<u8> {
    let last = 3 * scale * scale;
    let shapes = [
        ("body.0.weight", vec![4, 3, 3, 3]),
        ("body.0.bias", vec![4]),
        ("body.1.weight", vec![4]),
        ("body.2.weight", vec![4, 4, 3, 3]),
        ("body.2.bias", vec![4]),
        ("body.3.weight", vec![4]),
        ("body.4.weight", vec![last, 4, 3, 3]),
        ("body.4.bias", vec![last]),
    ];
    let tensors = shapes.map(|(name, shape)| {
        let bytes = vec![0_u8; 4 * shape.iter().product::<usize>()];
        (name, shape, bytes)
    });
    let views = tensors.iter().map(|(name, shape, bytes)| {
        (
            *name,
            TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap(),
        )
    });
    serialize(views, None).unwrap()
}
