import numpy as np
import pytest
from PIL import Image, ImageFilter

from upscale_training.niqe import asymmetric, fit, squares


def photograph(seed: int) -> np.ndarray:
    """Clouds of all sizes: their spectrum falls as that of photographs does."""
    draw = np.random.default_rng(seed)
    waves = np.hypot(*np.meshgrid(np.fft.fftfreq(288), np.fft.fftfreq(288), indexing="ij"))
    waves[0, 0] = 1.0
    clouds = np.fft.ifft2(np.fft.fft2(draw.standard_normal((3, 288, 288))) / waves).real
    levels = 128.0 + 45.0 * clouds / clouds.std()
    return np.clip(levels, 0, 255).astype(np.uint8).transpose(1, 2, 0)


def spoilt(picture: np.ndarray, blur: float = 0.0, noise: float = 0.0) -> np.ndarray:
    soft = np.asarray(Image.fromarray(picture).filter(ImageFilter.GaussianBlur(blur)), np.float64)
    grain = np.random.default_rng(3).normal(0.0, noise, picture.shape)
    return np.clip(soft + grain, 0, 255).astype(np.uint8)


def test_blur_and_noise_are_farther_from_nature_the_more_there_is():
    natural = fit(photograph(seed) for seed in range(12))
    picture = photograph(100)
    own = natural.distance(picture)
    blurred = [natural.distance(spoilt(picture, blur=blur)) for blur in (0.7, 1.5)]
    noisy = [natural.distance(spoilt(picture, noise=noise)) for noise in (10.0, 30.0)]
    assert own < blurred[0] < blurred[1]
    assert own < noisy[0] < noisy[1]


@pytest.mark.parametrize("shape", [1.0, 2.0])
def test_shape_and_widths_of_known_values_are_found(shape):
    draw = np.random.default_rng(4)
    values = {1.0: draw.laplace(0.0, 1.0, (2, 300, 300)), 2.0: draw.normal(0.0, 1.0, (2, 300, 300))}[shape]
    # A generalised Gaussian of width b falls by exp(-(x / b)^shape).
    width = {1.0: 1.0, 2.0: 2.0**0.5}[shape]
    # Twice as wide to the right, so two of three values lie there.
    side = np.where(draw.random(values.shape) < 2.0 / 3.0, 2.0, -1.0)
    found, left, right = asymmetric(np.abs(values) * side)
    np.testing.assert_allclose(left, width, rtol=0.05)
    np.testing.assert_allclose(right, 2.0 * width, rtol=0.05)
    np.testing.assert_allclose(found, shape, rtol=0.05)


def test_squares_come_row_by_row_and_a_picture_without_one_is_refused():
    plane = np.arange(4 * 6).reshape(4, 6)
    np.testing.assert_array_equal(squares(plane, 2)[4], [[14, 15], [20, 21]])
    with pytest.raises(ValueError, match="no square"):
        fit([np.zeros((95, 200, 3), np.uint8)])
    natural = fit(photograph(seed) for seed in range(3))
    with pytest.raises(ValueError, match="two are needed"):
        natural.distance(photograph(1)[:96, :96])
