import numpy as np
import pytest
import torch
from PIL import Image

from conftest import drawn_picture
from upscale_training.data import Pictures, place, read_picture
from upscale_training.resize import resize_8bit


def test_only_pictures_of_the_attribution_file_are_taken(picture_folder, tmp_path):
    pictures = Pictures(picture_folder, tmp_path / "cache", 2)
    assert len(pictures.clean) == 6
    assert np.array_equal(pictures.clean[5], drawn_picture(5))
    assert np.array_equal(pictures.shrunk[5], resize_8bit(drawn_picture(5), 96, 96))


def test_a_second_start_reads_the_cache(picture_folder, tmp_path):
    first = Pictures(picture_folder, tmp_path / "cache", 4).batch(1, 2, 3, 16)
    for path in picture_folder.glob("*.png"):
        path.unlink()
    second = Pictures(picture_folder, tmp_path / "cache", 4).batch(1, 2, 3, 16)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


def test_a_batch_is_drawn_by_seed_and_step(picture_folder, tmp_path):
    pictures = Pictures(picture_folder, tmp_path / "cache", 2)
    small, clean = pictures.batch(1, 10, 4, 24)
    assert small.shape == (4, 3, 24, 24) and clean.shape == (4, 3, 48, 48)
    assert torch.equal(pictures.batch(1, 10, 4, 24)[1], clean)
    assert not torch.equal(pictures.batch(1, 11, 4, 24)[1], clean)
    assert not torch.equal(pictures.batch(2, 10, 4, 24)[1], clean)


@pytest.mark.parametrize("scale", [2, 4])
def test_small_and_clean_show_the_same_place(picture_folder, tmp_path, scale):
    pictures = Pictures(picture_folder, tmp_path / "cache", scale)
    for step in range(8):
        small, clean = (batch.permute(0, 2, 3, 1).numpy() for batch in pictures.batch(3, step, 4, 32))
        for one, other in zip(small, clean, strict=True):
            again = resize_8bit((other * 255.0).round().astype(np.uint8), 32, 32) / 255.0
            # Away from the patch's edge the shrinking saw the same pixels.
            assert abs(again - one)[4:-4, 4:-4].max() < 1.01 / 255


def test_the_eight_positions_are_eight():
    patch = np.arange(12).reshape(2, 2, 3)
    assert len({place(patch, turn, mirror).tobytes() for turn in range(4) for mirror in range(2)}) == 8


def test_a_patch_larger_than_every_picture_is_refused(picture_folder, tmp_path):
    with pytest.raises(ValueError, match="97"):
        Pictures(picture_folder, tmp_path / "cache", 2).batch(1, 1, 1, 97)


def test_a_picture_is_cut_to_a_multiple_of_four(tmp_path):
    Image.fromarray(drawn_picture(1, 67, 90)).save(tmp_path / "odd.png")
    assert read_picture(tmp_path / "odd.png").shape == (64, 88, 3)
