import numpy as np
import pytest
import torch
from PIL import Image

from conftest import drawn_picture
from upscale_training.data import Pictures, packed, place, read_picture


def draws(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_only_pictures_of_the_attribution_file_are_taken(picture_folder, tmp_path):
    pictures = Pictures(picture_folder, tmp_path / "cache", 2)
    assert len(pictures.clean) == 6
    assert np.array_equal(pictures.clean[5], drawn_picture(5))


def test_a_second_start_reads_the_cache(picture_folder, tmp_path):
    first = Pictures(picture_folder, tmp_path / "cache", 4).patches(draws(1), 3, 16)
    for path in picture_folder.glob("*.png"):
        path.unlink()
    assert torch.equal(Pictures(picture_folder, tmp_path / "cache", 4).patches(draws(1), 3, 16), first)


def test_nothing_half_written_bears_the_name_of_the_cache(tmp_path):
    """Two processes that share a network start at once: the second must not open what the first still writes."""
    stem = tmp_path / "pack"

    def pictures():
        for seed in range(3):
            assert not stem.with_suffix(".raw").exists() and not stem.with_suffix(".json").exists()
            yield drawn_picture(seed)

    found = packed(stem, pictures())
    assert all(np.array_equal(found[seed], drawn_picture(seed)) for seed in range(3))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pack.json", "pack.raw"]


def test_patches_are_windows_of_the_pictures_turned_and_mirrored(picture_folder, tmp_path):
    pictures = Pictures(picture_folder, tmp_path / "cache", 2)
    patches = (pictures.patches(draws(4), 5, 192) * 255.0).round().byte().permute(0, 2, 3, 1).numpy()
    known = [place(picture, turn, mirror) for picture in pictures.clean for turn in range(4) for mirror in range(2)]
    assert all(any(np.array_equal(patch, one) for one in known) for patch in patches)
    assert len({patch.tobytes() for patch in patches}) > 1


def test_patches_are_drawn_by_the_seed(picture_folder, tmp_path):
    pictures = Pictures(picture_folder, tmp_path / "cache", 2)
    assert torch.equal(pictures.patches(draws(1), 4, 48), pictures.patches(draws(1), 4, 48))
    assert not torch.equal(pictures.patches(draws(1), 4, 48), pictures.patches(draws(2), 4, 48))


def test_the_eight_positions_are_eight():
    patch = np.arange(12).reshape(2, 2, 3)
    assert len({place(patch, turn, mirror).tobytes() for turn in range(4) for mirror in range(2)}) == 8


def test_a_patch_larger_than_every_picture_is_refused(picture_folder, tmp_path):
    with pytest.raises(ValueError, match="193"):
        Pictures(picture_folder, tmp_path / "cache", 2).patches(draws(1), 1, 193)


def test_a_picture_is_cut_to_a_multiple_of_four(tmp_path):
    Image.fromarray(drawn_picture(1, 67, 90)).save(tmp_path / "odd.png")
    assert read_picture(tmp_path / "odd.png").shape == (64, 88, 3)
