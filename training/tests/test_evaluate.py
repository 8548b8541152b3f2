import numpy as np
import pytest

from conftest import drawn_picture
from upscale_training.evaluate import compare, evaluate, interpolate, luma, psnr, ssim, table


def test_psnr_of_one_level_everywhere_is_48_decibels():
    assert psnr(np.zeros((9, 9)), np.ones((9, 9))) == pytest.approx(48.1308, abs=1e-4)
    assert psnr(np.ones((9, 9)), np.ones((9, 9))) == float("inf")


def test_luma_runs_from_16_to_235():
    black_white = luma(np.array([[[0, 0, 0], [255, 255, 255]]], np.uint8))
    assert black_white[0].tolist() == pytest.approx([16.0, 235.0])


def test_ssim_of_flat_planes_is_the_luminance_term():
    one, other = np.full((16, 16), 100.0), np.full((16, 16), 120.0)
    assert ssim(one, one) == pytest.approx(1.0)
    assert ssim(one, other) == pytest.approx((2 * 100 * 120 + 6.5025) / (100**2 + 120**2 + 6.5025))


def test_the_border_of_the_scale_is_shaved():
    clean = drawn_picture(2)
    framed = clean.copy()
    framed[:2], framed[-2:], framed[:, :2], framed[:, -2:] = 0, 255, 0, 255
    assert compare(clean, framed, 2) == (float("inf"), pytest.approx(1.0))
    assert compare(clean, framed, 1)[0] < 30


def test_an_empty_folder_is_named(tmp_path):
    with pytest.raises(ValueError, match="holds no picture"):
        evaluate(tmp_path, 2, {"bicubic": interpolate("bicubic")})


@pytest.mark.parametrize("scale, psnr_published, ssim_published", [(2, 33.66, 0.9299), (4, 28.42, 0.8104)])
def test_bicubic_on_set5_has_its_published_figures(evaluation_folder, scale, psnr_published, ssim_published):
    score = evaluate(evaluation_folder / "Set5", scale, {"bicubic": interpolate("bicubic")})["bicubic"]
    # Published from pictures whose Y was rounded; ours is not.
    assert score.psnr == pytest.approx(psnr_published, abs=0.04)
    assert score.ssim == pytest.approx(ssim_published, abs=0.0015)
    assert score.pictures == 5


def test_the_table_has_a_row_for_each_scale_and_method(picture_folder):
    rows = table([picture_folder], []).splitlines()
    assert len(rows) == 2 + 4
    assert rows[2].startswith("| pictures | 2 | bicubic | ")
