//! Brightness of samples in 0..1, and pixels that become brighter.

/// Appends luma of Rec. 601 of every pixel of 1 or 3 samples, within 0..1.
pub(crate) fn add_brightness(samples: &[f32], channels: usize, plane: &mut Vec<f32>) {
    let within = |sample: f32| sample.clamp(0.0, 1.0);
    if channels == 1 {
        plane.extend(samples.iter().copied().map(within));
        return;
    }
    let (pixels, _) = samples.as_chunks::<3>();
    plane.extend(pixels.iter().map(|pixel| {
        let [red, green, blue] = pixel.map(within);
        0.299 * red + 0.587 * green + 0.114 * blue
    }));
}

/// Makes a pixel brighter by `step`.
#[inline(always)]
pub(crate) fn brighten(pixel: &mut [f32], step: f32) {
    if step != 0.0 {
        for sample in pixel {
            *sample = sample.clamp(0.0, 1.0) + step;
        }
    }
}
