import numpy as np
import pytest
from PIL import Image

from conftest import drawn_picture
from upscale_training.resize import cubic_phases, resize, resize_matrix, to_8bit


def test_halving_has_the_eight_taps_of_matlab():
    row = resize_matrix(32, 16, "bicubic")[8]
    taps = [-0.01171875, -0.03515625, 0.11328125, 0.43359375, 0.43359375, 0.11328125, -0.03515625, -0.01171875]
    np.testing.assert_allclose(row[13:21], taps, atol=1e-12)
    np.testing.assert_allclose(np.delete(row, np.arange(13, 21)), 0.0, atol=1e-12)


def test_doubling_has_the_four_taps_of_keys():
    row = resize_matrix(32, 64, "bicubic")[21]
    np.testing.assert_allclose(row[9:13], [-0.0703125, 0.8671875, 0.2265625, -0.0234375], atol=1e-12)


@pytest.mark.parametrize("kernel", ["bicubic", "lanczos3"])
@pytest.mark.parametrize("size_out", [12, 24, 96, 192])
def test_a_flat_picture_stays_flat(kernel, size_out):
    flat = resize(np.full((48, 48, 3), 77, np.uint8), size_out, size_out, kernel)
    np.testing.assert_allclose(flat, 77.0, atol=1e-9)


@pytest.mark.parametrize("kernel, filter", [("bicubic", Image.BICUBIC), ("lanczos3", Image.LANCZOS)])
@pytest.mark.parametrize("size_out", [48, 96, 384, 768])
def test_the_inside_agrees_with_pillow(kernel, filter, size_out):
    plane = drawn_picture(3)[:, :, 1]
    ours = resize(plane[:, :, None], size_out, size_out, kernel)[:, :, 0]
    theirs = np.asarray(Image.fromarray(plane.astype(np.float32)).resize((size_out, size_out), filter))
    # Edges differ on purpose: MATLAB mirrors, Pillow leaves the missing taps out.
    edge = max(16 * size_out // 192, 4)
    inside = slice(edge, -edge)
    np.testing.assert_allclose(ours[inside, inside], theirs[inside, inside], atol=2e-3)


@pytest.mark.parametrize("scale", [2, 4])
def test_the_phases_are_the_rows_of_the_enlargement(scale):
    matrix = resize_matrix(16, 16 * scale, "bicubic")
    for phase, taps in enumerate(cubic_phases(scale)):
        np.testing.assert_allclose(matrix[8 * scale + phase, 6:11], taps, atol=1e-12)


def test_halves_are_rounded_up_and_the_range_is_kept():
    assert to_8bit(np.array([-1.0, 0.5 / 255, 1.49 / 255, 2.5 / 255, 7.0])).tolist() == [0, 1, 1, 3, 255]
