"""Scenes, cameras and the estimator that judges them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from conftest import drawn_picture
from upscale_training import degrade
from upscale_training.camera import Camera, passed_on, photographed, sharpened, softness_left
from upscale_training.condition import CLEAN, NONE, SILENT, UNKNOWN, source_inputs, source_numbers, told
from upscale_training.data import Pictures
from upscale_training.estimate import (
    NOISE_MAX,
    OVERSHOOTS,
    SOFTNESS_MAX,
    Estimator,
    features,
    levels,
    load_estimator,
    save_estimator,
    shares,
)
from upscale_training.fit_estimator import TOO_SOFT, misread
from upscale_training.restore_bed import ROWS, Row
from upscale_training.scenes import Scenes, kinds_of, scene_groups, seen, silenced, surer

SHIPPED = Path(__file__).parents[2] / "crates/upscale_image/weights/estimate.safetensors"


def batch(seed: int, side: int = 96) -> torch.Tensor:
    return torch.from_numpy(drawn_picture(seed, side, side).copy()).permute(2, 0, 1)[None].float() / 255.0


def noisy(picture: torch.Tensor, sigma: float) -> torch.Tensor:
    noise = torch.from_numpy(np.random.default_rng(3).normal(0.0, sigma / 255.0, picture.shape)).float()
    return degrade.round_8bit(picture + noise)


def test_the_shipped_estimator_hears_noise_and_softness():
    estimator = load_estimator(SHIPPED)
    found = {sigma: estimator.estimate(noisy(batch(1), sigma))[0] for sigma in (0.0, 8.0, 20.0)}
    assert found[0.0][0] < 1.0 and 5.0 < found[8.0][0] < 11.0 and found[20.0][0] > 14.0
    soft = [
        estimator.estimate(degrade.round_8bit(degrade.blur(batch(1), torch.tensor([s]))))[0, 1] for s in (0.0, 0.8, 1.4)
    ]
    assert soft[0] < 0.2 and 0.3 < soft[1] < 1.1 and soft[2] > soft[1] + 0.2


def test_features_do_not_depend_on_what_else_is_in_the_batch_or_on_its_turn():
    one, other = batch(1), batch(2)
    both = features(torch.cat([one, other]))
    torch.testing.assert_close(both[:1], features(one))
    torch.testing.assert_close(both[1:], features(other))
    turned = features(one.transpose(2, 3))
    torch.testing.assert_close(turned, features(one), atol=1e-4, rtol=1e-4)


def test_overshoots_are_told_of_any_picture_and_are_those_that_sharpening_leaves():
    noise = torch.rand(1, 3, 24, 24, generator=torch.Generator().manual_seed(3))
    flat, tiny = torch.full((1, 3, 64, 48), 0.5), batch(1, 24)
    assert features(flat)[0, -OVERSHOOTS:].tolist() == [0.0] * OVERSHOOTS
    for picture in (noise, tiny, batch(1, 400)[:, :, :24]):
        found = features(picture)[0, -OVERSHOOTS:]
        assert found.isfinite().all() and found.abs().max() <= 1.0
    edge = torch.full((1, 3, 64, 64), 0.3)
    edge[..., 32:] = 0.7
    soft = degrade.blur(edge, torch.tensor([1.0]))
    lesser = [features(one)[0, -OVERSHOOTS + 1] for one in (soft, sharpened(soft, torch.tensor([2.0]), torch.ones(1)))]
    assert lesser[0] < 0.01 and 0.05 < lesser[1] < 0.5


def test_a_blurred_picture_that_was_sharpened_reads_less_soft_and_a_blurred_one_as_before():
    estimator = load_estimator(SHIPPED)
    soft = degrade.blur(batch(1, 192), torch.tensor([1.2]))
    found = features(degrade.round_8bit(soft))
    torch.testing.assert_close(estimator(found), estimator.unsharpened(found), atol=0.02, rtol=0.0)
    again = features(degrade.round_8bit(sharpened(soft, torch.tensor([3.0]), torch.tensor([1.5]))))
    assert estimator(again)[0, 1] < estimator.unsharpened(again)[0, 1] - 0.03
    assert estimator(again)[0, 0] == estimator.unsharpened(again)[0, 0]


def test_softness_that_an_unsharp_mask_leaves_is_that_of_the_blur_less_what_it_brings_back():
    blurs, nothing = torch.tensor([0.0, 0.8, 1.2]), torch.zeros(3)
    assert torch.allclose(softness_left(blurs.square(), nothing, torch.ones(3)), blurs, atol=0.05)
    masks = torch.tensor([0.7, 1.5, 3.0])
    left = softness_left(torch.full((3,), 1.44), masks, torch.ones(3))
    assert 1.1 > left[0] > left[1] > left[2] > 0.0
    assert softness_left(torch.tensor([0.16]), torch.ones(1), torch.ones(1)) == 0.0


def test_a_camera_that_sharpens_whole_pictures_says_what_is_left_and_one_that_does_not_draws_as_before():
    still = Camera(sharp=1.0, two_steps=0.0, quiet=1.0, sharpened=0.0)
    big = batch(1, 288).expand(4, -1, -1, -1)
    plain, truth = photographed(big, np.random.default_rng(1), 4, still)
    masked, known = photographed(big, np.random.default_rng(1), 4, replace(still, whole_sharpened=1.0))
    assert (masked - plain).abs().amax(dim=(1, 2, 3)).min() > 0.01
    assert (known[:, 1] <= truth[:, 1] + 0.03).all() and torch.equal(known[:, 0], truth[:, 0])


def test_an_estimator_is_kept_and_read_back_and_another_file_is_refused(tmp_path):
    estimator = Estimator(features(batch(1)).shape[1])
    save_estimator(estimator, tmp_path / "e.safetensors")
    again = load_estimator(tmp_path / "e.safetensors")
    torch.testing.assert_close(again(features(batch(1))), estimator(features(batch(1))))
    with pytest.raises(ValueError, match="no estimator"):
        load_estimator(SHIPPED.with_suffix(".golden.safetensors"))


def test_numbers_of_noise_and_softness_are_those_of_the_engine():
    assert source_inputs(None, None) == (SILENT, SILENT)
    assert source_inputs(0.0, 0.0) == pytest.approx((NONE, NONE))
    assert source_inputs(NOISE_MAX, SOFTNESS_MAX) == pytest.approx((1.0, 1.0))
    assert source_inputs(5.0, 1.1) == pytest.approx((0.64, 0.6), abs=1e-2)
    found = shares(torch.tensor([7.0]), torch.tensor([0.8]))
    torch.testing.assert_close(levels(found), torch.tensor([[7.0, 0.8]]))
    assert source_numbers(torch.tensor([[-3.0, 9.0]])).tolist() == [[pytest.approx(NONE), 1.0]]


def test_nothing_is_said_of_noise_that_may_be_texture():
    generator = torch.Generator().manual_seed(3)
    threads = torch.rand(1, 1, 131, 131, generator=generator) - 0.5
    taps = torch.tensor([1.0, 3.0, 3.0, 1.0])
    cloth = 0.5 + 0.01 * torch.nn.functional.conv2d(threads, torch.outer(taps, taps)[None, None]).expand(1, 3, -1, -1)
    estimator = load_estimator(SHIPPED)
    noise, softness = told(estimator, cloth)[0].tolist()
    assert noise == SILENT
    assert softness > NONE
    sensor = cloth + 0.06 * torch.randn(cloth.shape, generator=generator)
    assert told(estimator, sensor)[0, 0] > 0.5


def test_a_camera_with_nothing_wrong_is_a_bicubic_shrink():
    still = Camera(sharp=1.0, two_steps=0.0, quiet=1.0, sharpened=0.0)
    big = torch.cat([batch(seed, 288) for seed in range(12)])
    small, truth = photographed(big, np.random.default_rng(1), 4, still)
    expected = [degrade.shrink(big, torch.full((12,), kernel), 4) for kernel in range(4)]
    for place in range(12):
        nearest = min((small[place] - one[place]).abs().max() for one in expected)
        assert nearest < 1e-5
    assert truth[:, 0].max() == 0.0 and truth[:, 1].max() <= (1.0 / 6.0) ** 0.5 + 1e-6


def test_what_a_camera_says_of_itself_is_what_it_did():
    soft = Camera(sharp=0.0, very_soft=1.0, two_steps=0.0, quiet=0.0, plain_grain=1.0, sharpened=0.0)
    small, truth = photographed(torch.full((16, 3, 288, 288), 0.5), np.random.default_rng(2), 4, soft)
    # A flat picture: all that is left is noise.
    deviation = small.sub(0.5).square().mean(dim=(1, 2, 3)).sqrt() * 255.0
    torch.testing.assert_close(deviation, truth[:, 0], atol=1e-3, rtol=1e-3)
    assert truth[:, 1].min() > 0.6 and truth[:, 1].max() < 2.6
    edge = torch.zeros(8, 3, 288, 288)
    edge[..., 144:] = 1.0
    soft = replace(soft, quiet=1.0, uneven_lens=0.0)
    small, truth = photographed(edge, np.random.default_rng(3), 4, soft)
    for profile, sigma in zip(small[:, 0, 32].diff(dim=1), truth[:, 1], strict=True):
        place = torch.arange(len(profile), dtype=torch.float32)
        middle = (profile * place).sum() / profile.sum()
        spread = ((profile * (place - middle).square()).sum() / profile.sum()).sqrt()
        # The widths of a pixel and of the shrinking kernel are in the edge as well.
        assert abs(spread - sigma) < 0.35


def test_scenes_are_reproducible_and_patches_belong_to_their_originals(picture_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("upscale_training.scenes.SIDES", (64,))
    pictures, estimator = Pictures(picture_folder, tmp_path / "cache", 2), load_estimator(SHIPPED)
    scenes = Scenes(clean=1.0, file=0.0)

    def drawn() -> list:
        return scene_groups(pictures, np.random.default_rng([1, 2, 3]), 3, 2, 24, estimator, scenes)

    groups, again = drawn(), drawn()
    assert len(groups) == 3
    for one, other in zip(groups, again, strict=True):
        assert torch.equal(one.small, other.small) and torch.equal(one.condition, other.condition)
        assert one.small.shape == (2, 3, 24, 24) and one.clean.shape == (2, 3, 48, 48) and one.condition.shape == (6,)
        means = torch.nn.functional.avg_pool2d(one.clean, 2)
        assert (means - one.small).abs().mean() < 0.02


def test_every_kind_is_in_a_step_by_its_share_and_camera_scenes_are_told_of_their_files(picture_folder, tmp_path):
    draw, scenes = np.random.default_rng(5), Scenes()
    kinds = [kind for _ in range(200) for kind in kinds_of(6, draw, scenes)]
    for kind, share in (("clean", 1 / 3), ("file", 1 / 6), ("camera", 1 / 2)):
        assert abs(kinds.count(kind) / len(kinds) - share) < 0.02
    pictures = Pictures(picture_folder, tmp_path / "cache", 2)
    shot = seen(pictures, draw, ["camera", "clean", "file", "camera"], 64, scenes)
    assert shot.small.shape == (4, 3, 64, 64) and shot.clean.shape == (4, 3, 128, 128)
    assert torch.equal(shot.small, degrade.round_8bit(shot.small)) and shot.truth[1, 0] == 0.0
    assert tuple(shot.file[1].tolist()) in (CLEAN, UNKNOWN)


def test_some_pictures_are_only_shrunk_and_softened(picture_folder, tmp_path):
    pictures = Pictures(picture_folder, tmp_path / "cache", 2)
    scenes = Scenes(only_soft=1.0, compressed=1.0, only_soft_range=(0.9, 0.9 + 1e-9))
    shot = seen(pictures, np.random.default_rng(6), ["camera"] * 4, 64, scenes)
    assert torch.allclose(shot.truth, torch.tensor([[0.0, 0.9]]).expand(4, 2))
    assert {tuple(one) for one in shot.file.tolist()} <= {CLEAN, UNKNOWN}
    kernels, sigma = torch.zeros(4, dtype=torch.long), torch.full((4,), 0.9)
    margin = torch.nn.functional.pad(shot.clean, (2 * degrade.MARGIN,) * 4, mode="reflect")
    expected = degrade.round_8bit(degrade.blur(degrade.shrink(margin, kernels, 2), sigma))
    # The true margin of the original lies round it in place of its mirror image.
    inside = (..., slice(8, -8), slice(8, -8))
    assert torch.allclose(shot.small[inside], expected[inside], atol=1.0 / 255.0 + 1e-6)


def test_what_was_passed_on_has_a_larger_jpegs_faults_and_reads_clean():
    estimator, found = load_estimator(SHIPPED), []
    for seed in range(6):
        picture = batch(seed)
        made = degrade.round_8bit(passed_on(picture, np.random.default_rng(seed)))
        assert made.shape == picture.shape and 1.0 < (made - picture).abs().mean() * 255.0 < 16.0
        assert (made.mean(dim=(2, 3)) - picture.mean(dim=(2, 3))).abs().max() < 1.0 / 255.0
        found.append(estimator.estimate(made)[0])
    noise, softness = torch.stack(found).median(dim=0).values
    assert noise < 2.0 and softness < 0.2


def test_only_compressed_pictures_were_passed_on(picture_folder, tmp_path):
    pictures, kinds = Pictures(picture_folder, tmp_path / "cache", 2), ["camera"] * 4

    def shot(compressed: float, share: float) -> torch.Tensor:
        scenes = Scenes(compressed=compressed, passed_on=share, only_soft=0.0)
        return seen(pictures, np.random.default_rng(5), kinds, 48, scenes).small

    assert (shot(0.0, 1.0) == shot(0.0, 0.0)).all()
    assert ((shot(1.0, 1.0) - shot(1.0, 0.0)).abs().mean(dim=(1, 2, 3)) > 0.5 / 255.0).all()


def test_both_numbers_are_silent_in_three_scenes_of_ten():
    said = torch.full((4000, 2), 0.5)
    heard = silenced(said, np.random.default_rng(4), Scenes())
    assert abs((heard == SILENT).all(dim=1).float().mean() - 0.307) < 0.03
    assert set(heard.unique().tolist()) == {SILENT, 0.5}


def test_what_is_said_of_softness_is_moved_towards_the_truth_unless_noise_is_heard():
    said = torch.tensor([source_inputs(*one) for one in ((0.5, 0.4), (None, 2.0), (2.9, 0.0), (3.1, 0.4))])
    truth = torch.tensor([[7.0, 0.8], [9.0, 3.0], [0.0, 0.0], [7.0, 0.8]])
    moved = torch.tensor([source_inputs(*one) for one in ((0.5, 0.5), (None, 2.05), (2.9, 0.0), (3.1, 0.4))])
    assert torch.allclose(surer(said, truth, Scenes(surer=0.25)), moved)
    assert torch.equal(surer(said, truth, Scenes(surer=0.0)), said)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_of_the_bed_is_what_it_says(row: Row):
    clean = drawn_picture(7, 256, 256)
    small = row.make(clean, 4)
    assert small.shape == (64, 64, 3) and small.dtype == np.uint8
    conditions = row.conditions(small, load_estimator(SHIPPED))
    assert set(conditions) == {"matched", "estimate", "unknown", "mismatched"}
    assert all(len(numbers) == 6 for numbers in conditions.values())
    assert conditions["matched"] != conditions["mismatched"] and conditions["unknown"][4:] == (SILENT, SILENT)


def test_too_much_softness_costs_more_where_a_scene_is_noisy_or_sharp():
    asked, dear = torch.full((1, 2), 0.3), torch.tensor([True])
    softer, sharper = torch.tensor([[0.3, 0.5]]), torch.tensor([[0.3, 0.1]])
    torch.testing.assert_close(misread(softer, asked, dear), TOO_SOFT * misread(sharper, asked, dear))
    torch.testing.assert_close(misread(softer, asked, ~dear), misread(sharper, asked, ~dear))
    # Too much noise is no such error.
    noisier = torch.tensor([[0.5, 0.3]])
    torch.testing.assert_close(misread(noisier, asked, dear), misread(noisier, asked, ~dear))
