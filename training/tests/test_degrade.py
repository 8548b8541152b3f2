import io

import numpy as np
import pytest
import torch
from PIL import Image

from conftest import drawn_picture
from upscale_training.condition import CLEAN, LUMA_TABLE, jpeg_condition, quality_table
from upscale_training.degrade import KERNELS, MARGIN, blur, cut, jpeg, noise, round_8bit, shrink
from upscale_training.resize import resize_8bit


def as_tensor(picture: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(picture.copy()).permute(2, 0, 1)[None].float() / 255.0


def pillow_jpeg(picture: np.ndarray, quality: int, halved: bool) -> tuple[np.ndarray, dict]:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=quality, subsampling=2 if halved else 0)
    with Image.open(file) as image:
        return np.asarray(image).astype(np.float64), image.quantization


@pytest.mark.parametrize("halved", [False, True])
@pytest.mark.parametrize("quality", [20, 50, 75, 95])
def test_jpeg_does_what_libjpeg_does(quality, halved):
    picture = drawn_picture(4)
    theirs, _ = pillow_jpeg(picture, quality, halved)
    ours = jpeg(as_tensor(picture), torch.tensor([quality]), torch.tensor([halved]))[0].permute(1, 2, 0).numpy() * 255.0
    damage = np.mean((theirs - picture) ** 2)
    # libjpeg's DCT works in whole numbers; what is left is its rounding.
    assert np.mean((ours - theirs) ** 2) < max(0.06 * damage, 1.5)
    assert abs(np.mean((ours - picture) ** 2) / damage - 1.0) < 0.15


@pytest.mark.parametrize("quality", [1, 30, 50, 75, 98, 100])
def test_the_tables_are_those_in_a_file_of_libjpeg(quality):
    _, tables = pillow_jpeg(drawn_picture(1), quality, True)
    assert quality_table(LUMA_TABLE, torch.tensor([quality]))[0].flatten().tolist() == list(tables[0])
    mean = np.log2(1.0 + np.mean(tables[1])) / 8.0
    assert jpeg_condition(quality, 1.0)[2] == pytest.approx(min(mean, 1.0), abs=1e-6)


def test_a_clean_file_is_told_as_no_steps_at_all():
    assert CLEAN == (1.0, 0.0, 0.0, 0.0)
    assert jpeg_condition(100, 0.0) == pytest.approx((1.0, 0.125, 0.125, 0.0))


def test_each_picture_of_a_batch_is_compressed_by_itself():
    pictures = torch.cat([as_tensor(drawn_picture(seed)) for seed in (1, 2)])
    quality, halved = torch.tensor([30, 90]), torch.tensor([True, False])
    both = jpeg(pictures, quality, halved)
    for index in range(2):
        alone = jpeg(pictures[index : index + 1], quality[index : index + 1], halved[index : index + 1])
        assert torch.equal(both[index : index + 1], alone)


def test_jpeg_wants_whole_blocks():
    with pytest.raises(ValueError, match="16"):
        jpeg(torch.zeros(1, 3, 24, 32), torch.tensor([50]), torch.tensor([True]))


@pytest.mark.parametrize("scale", [2, 4])
@pytest.mark.parametrize("kernel", range(len(KERNELS)))
def test_a_shrunk_patch_is_the_inside_of_the_shrunk_picture(kernel, scale):
    picture = drawn_picture(5)
    whole = resize_8bit(picture, 192 // scale, 192 // scale, KERNELS[kernel])
    patch = round_8bit(shrink(as_tensor(picture), torch.tensor([kernel]), scale))[0].permute(1, 2, 0).numpy() * 255.0
    assert abs(patch - whole[MARGIN:-MARGIN, MARGIN:-MARGIN]).max() < 1.01
    assert np.mean(patch.round() != whole[MARGIN:-MARGIN, MARGIN:-MARGIN]) < 1e-3


def test_blur_keeps_flat_and_zero_keeps_all():
    picture = torch.cat([torch.full((1, 3, 32, 32), 0.4), as_tensor(drawn_picture(6, 32, 32))])
    blurred = blur(picture, torch.tensor([1.2, 0.0]))
    torch.testing.assert_close(blurred[0], picture[0])
    torch.testing.assert_close(blurred[1], picture[1])
    assert blur(picture[1:], torch.tensor([1.2])).std() < 0.95 * picture[1:].std()


def test_noise_has_the_strength_asked_for():
    drawn = torch.randn(2, 3, 64, 64, generator=torch.manual_seed(1))
    levels = noise(torch.full((2, 3, 64, 64), 0.5), torch.tensor([5.0, 0.0]), drawn).std(dim=(1, 2, 3)) * 255.0
    assert levels.tolist() == pytest.approx([5.0, 0.0], abs=0.1)


def test_windows_are_cut_where_asked():
    picture = torch.arange(2 * 3 * 8 * 8).reshape(2, 3, 8, 8).float()
    windows = cut(picture, torch.tensor([0, 3]), torch.tensor([5, 1]), 3)
    assert torch.equal(windows[0], picture[0, :, 0:3, 5:8]) and torch.equal(windows[1], picture[1, :, 3:6, 1:4])
