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

/// A Compact network of 1x as a file: what its last two convolutions add to the source makes that a little softer.
pub fn softening() -> Vec<u8> {
    // Three channels go through as they are; the last convolution adds a share of what the four neighbours differ by.
    let through = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    let soft = [0.0, 0.1, 0.0, 0.1, -0.4, 0.1, 0.0, 0.1, 0.0];
    let tensors = [
        ("body.0.weight", vec![3, 3, 3, 3], each_by_itself(through)),
        ("body.0.bias", vec![3], vec![0.0; 3]),
        ("body.1.weight", vec![3], vec![1.0; 3]),
        ("body.2.weight", vec![3, 3, 3, 3], each_by_itself(soft)),
        ("body.2.bias", vec![3], vec![0.0; 3]),
    ];
    file_of(&tensors)
}

/// A Compact network of 64 channels as a file, wide enough for kernels that narrow layers never see: colours go through two
/// convolutions, and the last one, of zeros, adds nothing to the repeated source.
pub fn wide_compact(scale: usize) -> Vec<u8> {
    const WIDE: usize = 64;
    let last = 3 * scale * scale;
    let through = |from: usize| {
        let taps = (0..WIDE).flat_map(move |to| (0..from).map(move |one| to % from == one));
        taps.flat_map(|is_same| {
            let mut kernel = [0.0; 9];
            kernel[4] = f32::from(u8::from(is_same));
            kernel
        })
        .collect()
    };
    file_of(&[
        ("body.0.weight", vec![WIDE, 3, 3, 3], through(3)),
        ("body.0.bias", vec![WIDE], vec![0.0; WIDE]),
        ("body.1.weight", vec![WIDE], vec![1.0; WIDE]),
        ("body.2.weight", vec![WIDE, WIDE, 3, 3], through(WIDE)),
        ("body.2.bias", vec![WIDE], vec![0.0; WIDE]),
        ("body.3.weight", vec![WIDE], vec![1.0; WIDE]),
        (
            "body.4.weight",
            vec![last, WIDE, 3, 3],
            vec![0.0; last * WIDE * 9],
        ),
        ("body.4.bias", vec![last], vec![0.0; last]),
    ])
}

/// Numbers in single precision by name and shape, as a safetensors file.
fn file_of(tensors: &[(&str, Vec<usize>, Vec<f32>)]) -> Vec<u8> {
    let bytes = tensors.iter().map(|(name, shape, values)| {
        let bytes: Vec<u8> = values.iter().flat_map(|one| one.to_le_bytes()).collect();
        (*name, shape, bytes)
    });
    let bytes: Vec<_> = bytes.collect();
    let views = bytes.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(Dtype::F32, shape.to_vec(), bytes);
        (*name, view.unwrap())
    });
    serialize(views, None).unwrap()
}

/// A convolution of three channels that does the same to each.
fn each_by_itself(kernel: [f32; 9]) -> Vec<f32> {
    let kernels = (0..9).map(|pair| if pair % 4 == 0 { kernel } else { [0.0; 9] });
    kernels.flatten().collect()
}

/// The network of zeros as ncnn's two files: the text and the numbers.
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
