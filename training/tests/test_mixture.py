from dataclasses import replace

import numpy as np
import pytest
import torch

from upscale_training.condition import CLEAN, UNKNOWN, jpeg_condition
from upscale_training.data import Pictures
from upscale_training.mixture import Mixture, clean_group, condition_for, damaged_group
from upscale_training.rendered import PAGES, page
from upscale_training.resize import resize_8bit


@pytest.fixture
def pictures(picture_folder, tmp_path):
    return {scale: Pictures(picture_folder, tmp_path / "cache", scale) for scale in (2, 4)}


def draws(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 1])


@pytest.mark.parametrize("scale, side", [(2, 24), (4, 12)])
def test_clean_patches_are_the_benchmarks_own(pictures, scale, side):
    group = clean_group(pictures[scale], draws(1), 4, side, Mixture(bicubic=1.0, clean_unknown=0.0))
    assert group.condition.tolist() == list(CLEAN)
    for small, clean in zip(group.small, group.clean, strict=True):
        again = resize_8bit((clean.permute(1, 2, 0) * 255.0).round().byte().numpy(), side, side) / 255.0
        # Away from the patch's edge the shrinking saw the same pixels.
        assert abs(again - small.permute(1, 2, 0).numpy())[4:-4, 4:-4].max() < 1.01 / 255


@pytest.mark.parametrize("scale, side", [(2, 24), (4, 12)])
def test_damaged_patches_show_the_place_of_their_clean_ones(pictures, scale, side):
    for seed in range(6):
        group = damaged_group(pictures[scale], draws(seed), 3, side, Mixture(mild=0.0, strong=0.0, twice=0.5))
        assert group.small.shape == (3, 3, side, side) and group.clean.shape == (3, 3, side * scale, side * scale)
        shrunk = torch.nn.functional.avg_pool2d(group.clean, scale)
        away = [(group.small.roll((dy, dx), (2, 3)) - shrunk)[:, :, 2:-2, 2:-2].square().mean() for dy, dx in AROUND]
        assert int(np.argmin(away)) == 0


AROUND = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0)]


def test_what_is_told_is_true_unknown_or_a_lie_in_the_shares_asked_for(pictures):
    shares, draw = Mixture(), draws(3)
    truth = jpeg_condition(60, 1.0)
    tables = [torch.full((8, 8), 2.0 ** (8.0 * value) - 1.0) for value in truth[1:3]]
    inputs = [condition_for(draw, 60, *tables, True, shares) for _ in range(2000)]
    true = np.mean([np.allclose(one, truth, atol=1e-5) for one in inputs])
    unknown = np.mean([tuple(one) == UNKNOWN for one in inputs])
    assert true == pytest.approx(shares.true, abs=0.05) and unknown == pytest.approx(shares.unknown, abs=0.05)
    assert any(tuple(one) == CLEAN for one in inputs)


def test_the_groups_are_drawn_by_the_seed(pictures):
    for make in (clean_group, damaged_group):
        one, same, other = (make(pictures[2], draws(seed), 3, 16, Mixture()) for seed in (5, 5, 6))
        assert torch.equal(one.small, same.small) and torch.equal(one.condition, same.condition)
        assert not torch.equal(one.small, other.small)


def test_strong_damage_is_worse_than_none(pictures):
    shares = Mixture(mild=0.0, strong=0.0)
    errors = []
    for chosen in (shares, replace(shares, strong=1.0)):
        groups = [damaged_group(pictures[2], draws(seed), 4, 16, chosen) for seed in range(8)]
        errors.append(np.mean([(torch.nn.functional.avg_pool2d(g.clean, 2) - g.small).abs().mean() for g in groups]))
    assert errors[1] > 1.3 * errors[0]


@pytest.mark.parametrize("kind", range(len(PAGES)))
def test_pages_are_full_and_repeatable(kind):
    draw = PAGES[kind][1]
    one, same = (np.asarray(draw(np.random.default_rng(4), 96)) for _ in range(2))
    assert one.shape == (96, 96, 3) and one.dtype == np.uint8
    assert np.array_equal(one, same) and one.std() > 4


def test_pages_differ_by_their_number():
    assert np.array_equal(page(3, 64), page(3, 64)) and not np.array_equal(page(3, 64), page(4, 64))


def test_pages_are_mixed_in(picture_folder, tmp_path):
    mixed = Pictures(picture_folder, tmp_path / "cache", 2, pages=3)
    assert len(mixed.pages) == 3 and np.array_equal(mixed.pages[2], page(2))
    plain = Pictures(picture_folder, tmp_path / "cache", 2)
    assert not torch.equal(mixed.patches(draws(1), 12, 48), plain.patches(draws(1), 12, 48))
