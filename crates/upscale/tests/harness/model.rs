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

/// The same network as ncnn's two files: the text and the numbers.
pub fn compact_ncnn(scale: usize) -> (String, Vec<u8>) {
    let last = 3 * scale * scale;
    let text = format!(
        "7767517\n9 10\n\
        Input       in      0 1 data\n\
        Split       both    1 2 data data0 data1\n\
        Convolution first   1 1 data0 a 0=4 1=3 4=1 5=1 6=108\n\
        PReLU       slopes  1 1 a b 0=4\n\
        Convolution second  1 1 b c 0=4 1=3 4=1 5=1 6=144 9=2 -23310=1,2.000000e-01\n\
        Convolution last    1 1 c d 0={last} 1=3 4=1 5=1 6={}\n\
        PixelShuffle shuffle 1 1 d e 0={scale}\n\
        Interp      base    1 1 data1 f 0=1 1={scale}.0 2={scale}.0\n\
        BinaryOp    sum     2 1 e f output 0=0\n",
        36 * last
    );
    // Every convolution has a tag before its weights; all numbers are 0.
    let numbers = 3 * 4 + 4 * (108 + 4 + 4 + 144 + 4 + 36 * last + last);
    (text, vec![0; numbers])
}
