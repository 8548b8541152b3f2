//! Brightness of samples in 0..1, and pixels that become brighter.

use upscale_simd::widened;

/// Appends luma of Rec. 601 of every pixel of 1 or 3 samples, within 0..1.
pub(crate) fn add_brightness(samples: &[f32], channels: usize, plane: &mut Vec<f32>) {
    widened!({
        let within = |sample: f32| sample.clamp(0.0, 1.0);
        if channels == 1 {
            plane.extend(samples.iter().copied().map(within));
        } else {
            let (pixels, _) = samples.as_chunks::<3>();
            plane.extend(pixels.iter().map(|pixel| {
                let [red, green, blue] = pixel.map(within);
                0.299 * red + 0.587 * green + 0.114 * blue
            }));
        }
    });
}

/// Makes pixels of 1 or 3 samples brighter, each by its own step; where that is 0, they stay to the bit.
#[inline(always)]
pub(crate) fn brighten(samples: &mut [f32], channels: usize, steps: &[f32]) {
    match channels {
        1 => brighten_pixels::<1>(samples, steps),
        _ => brighten_pixels::<3>(samples, steps),
    }
}

/// The number of channels is known when this is compiled.
#[inline(always)]
fn brighten_pixels<const CHANNELS: usize>(samples: &mut [f32], steps: &[f32]) {
    let (pixels, _) = samples.as_chunks_mut::<CHANNELS>();
    for (pixel, step) in pixels.iter_mut().zip(steps) {
        *pixel = pixel.map(|sample| {
            let moved = sample.clamp(0.0, 1.0) + step;
            if *step == 0.0 { sample } else { moved }
        });
    }
}
