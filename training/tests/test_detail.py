"""Crisper detail: what the loss wants, whom it leaves alone, what the gates say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import avg_pool2d

from test_network import stirred
from upscale_training.data import Pictures
from upscale_training.degrade import blur
from upscale_training.detail import DetailRun, EvenRun, Photos, grid, lacking, one_way, sharpened, too_smooth
from upscale_training.mixture import Group
from upscale_training.network import Architecture, between
from upscale_training.recipe import Recipe
from upscale_training.spectrum import SPECTRUM, comb, finest, lines, mirrored, standing_out, weaves

SHAPE = {"channels": 6, "blocks": 2, "conditioned": True}
ESTIMATOR = Path(__file__).parents[2] / "crates/upscale_image/weights/estimate.safetensors"
SCENES = {"inputs": 6, "scenes": 4, "crops": 2, "estimator": str(ESTIMATOR)}
RECIPE = Recipe("d", 2, 4, pages=3, patch_sides=(16,), psnr_share=1.0, contrast=0.2, grid=0.25, **SHAPE, **SCENES)


def test_smoothness_costs_and_contrast_of_the_right_size_does_not():
    draw = torch.Generator().manual_seed(1)
    clean = torch.rand(2, 3, 48, 48, generator=draw)
    smooth = avg_pool2d(clean, 3, 1, 1)
    assert too_smooth(clean, clean, 2) == 0.0
    assert too_smooth(smooth, clean, 2) > 0.3
    # Other detail of the same strength: no one asks for the very same.
    assert too_smooth(torch.rand(2, 3, 48, 48, generator=draw), clean, 2) < 0.5 * too_smooth(smooth, clean, 2)


def test_a_grid_is_no_contrast():
    draw = torch.Generator().manual_seed(2)
    clean = torch.rand(2, 3, 96, 96, generator=draw) * 0.2 + 0.4
    smooth = avg_pool2d(clean, 3, 1, 1)
    drawn = torch.randn(1, 1, 4, 4, generator=draw).tile(1, 1, 24, 24) * 0.03
    # By contrast alone a grid is better than none, which is how one came to be drawn.
    assert too_smooth(smooth + drawn, clean, 2) < too_smooth(smooth, clean, 2)
    assert lacking(smooth + drawn, clean, 4, 0.25) > lacking(smooth, clean, 4, 0.25) + 1.0
    assert grid(drawn.expand(1, 3, -1, -1), 4) > 1.0
    # What lies anywhere, and what is the same everywhere, are none.
    noise = torch.randn(1, 3, 96, 96, generator=draw) * 0.03
    assert grid(noise, 4) < 0.1 and grid(torch.full((1, 3, 96, 96), 0.5), 4) == 0.0


def test_a_mask_makes_edges_steeper_and_leaves_grain_and_colours():
    draw = torch.Generator().manual_seed(5)
    step = torch.linspace(-40.0, 40.0, 64).sigmoid() * 0.4 + 0.3
    edge = (step * torch.tensor([1.0, 0.8, 0.5])[:, None]).expand(64, 1, 3, 64).permute(1, 2, 0, 3)
    steeper = sharpened(edge, 0.8)
    assert steeper.diff(dim=3).max() > 1.1 * edge.diff(dim=3).max()
    added = steeper - edge
    torch.testing.assert_close(added[:, 0], added[:, 2])
    grain = 0.5 + 0.008 * torch.randn(1, 3, 64, 64, generator=draw)
    assert (sharpened(grain, 0.8) - grain).abs().mean() < 0.001


def test_a_mask_leaves_what_runs_every_way():
    draw = torch.Generator().manual_seed(6)
    leaves = torch.rand(1, 3, 12, 12, generator=draw).repeat_interleave(8, 2).repeat_interleave(8, 3)
    leaves = blur(leaves, torch.tensor([2.0]))
    stripes = torch.arange(96.0).mul(0.5).sin().mul(0.2).add(0.5).expand(1, 3, 96, 96)
    inside = (slice(None), slice(None), slice(16, -16), slice(16, -16))
    assert one_way(stripes[:, :1])[inside].min() > 0.95
    assert one_way(leaves[:, :1])[inside].mean() < 0.4
    # A fence keeps its mask whichever way it runs; flat places have no way.
    torch.testing.assert_close(one_way(stripes[:, :1].mT), one_way(stripes[:, :1]).mT)
    assert one_way(torch.full((1, 1, 32, 32), 0.5)).max() == 0.0


def test_photographs_alone_are_asked_for_with_the_mask():
    draw = torch.Generator().manual_seed(8)
    step = torch.linspace(-20.0, 20.0, 32).sigmoid().mul(0.4).add(0.3).expand(2, 3, 32, 32)
    group = Group(torch.rand(2, 3, 16, 16, generator=draw), step, torch.zeros(6))
    plain, asked = (DetailRun(replace(RECIPE, sharpen=share), "cpu") for share in (0.0, 1.0))
    assert asked.loss(step, Photos(**vars(group))) > plain.loss(step, Photos(**vars(group))) + 0.01
    assert asked.loss(step, group) == plain.loss(step, group)


def combed(picture: torch.Tensor, clean: torch.Tensor) -> torch.Tensor:
    return comb(standing_out(picture), standing_out(clean), 4)


def woven(picture: torch.Tensor, clean: torch.Tensor) -> torch.Tensor:
    return lines(standing_out(picture), standing_out(clean))


def test_a_grid_whose_sign_follows_the_picture_is_one():
    draw = torch.Generator().manual_seed(3)
    rough = torch.nn.functional.interpolate(torch.randn(2, 1, 40, 40, generator=draw), scale_factor=4, mode="bicubic")
    clean = (0.5 + 0.1 * rough + 0.02 * torch.randn(2, 1, 160, 160, generator=draw)).expand(-1, 3, -1, -1)
    dots = torch.tensor([[1.0, 0.2, 0.2, 0.2], *[[0.2, -0.4, -0.4, -0.2]] * 3]).tile(40, 40)
    drawn = clean + 0.05 * dots * rough.sign()
    assert grid(drawn - clean, 4) < 0.2 < combed(drawn, clean).min()
    # Other noise of the same strength stands out nowhere.
    noisy = clean + 0.02 * torch.randn(2, 1, 160, 160, generator=draw)
    assert combed(clean, clean).max() == 0.0
    assert combed(noisy, clean).max() < 0.2


def test_a_weave_of_any_period_is_seen_and_another_texture_is_not():
    draw = torch.Generator().manual_seed(4)
    smooth = torch.nn.functional.interpolate(torch.randn(2, 1, 40, 40, generator=draw), scale_factor=4, mode="bicubic")
    clean = (0.5 + 0.1 * smooth + 0.01 * torch.randn(2, 1, 160, 160, generator=draw)).expand(-1, 3, -1, -1)
    at = torch.arange(160) * 2.0 * torch.pi
    # Three waves of 2.9 pixels, as the face network drew them, of two levels each, where the picture is light.
    waves = [(at[:, None] * y + at[None] * x).cos() for y, x in ((0.345, 0.0), (0.172, 0.299), (-0.172, 0.299))]
    weave = 0.008 * sum(waves) * (smooth > 0.0)
    assert combed(clean + weave, clean).max() < 0.3 and grid(weave.expand(-1, 3, -1, -1), 4) < 0.1
    assert woven(clean + weave, clean).min() > 0.02
    # The original's own weave is none of ours, and neither is grain nor a softer picture.
    assert woven(clean + weave, clean + weave).max() == 0.0
    grain = 0.01 * torch.randn(2, 1, 160, 160, generator=draw)
    assert woven(clean + grain, clean).max() < 0.002
    assert woven(blur(clean, torch.ones(2)), clean).max() < 0.002


@pytest.mark.usefixtures("small_scenes")
def test_pages_are_never_asked_for_contrast(picture_folder, tmp_path):
    pictures, run = Pictures(picture_folder, tmp_path / "cache", 2, pages=3), DetailRun(RECIPE, "cpu")
    groups = [group for group, _ in run.groups(pictures)]
    assert [isinstance(group, Photos) for group in groups] == [True, True, False, False]
    group = groups[0]
    output = avg_pool2d(group.clean, 3, 1, 1)
    plain = RECIPE.loss(0, output, group.clean)
    assert run.loss(output, group) > plain + 0.001
    assert run.loss(output, Group(group.small, group.clean, group.condition)) == plain
    before = {name: value.clone() for name, value in run.network.named_parameters()}
    assert run.step_on(pictures).isfinite()
    changed = {name for name, value in run.network.named_parameters() if (value != before[name]).any()}
    assert changed and not any(name.startswith("cond") for name in changed), "the condition does what it did"


def test_a_weave_in_one_place_shows_where_hair_and_soft_waves_do_not():
    y, x = np.mgrid[:96, :96]
    waves, hair = 120 + 10 * np.sin(x / 7 + y / 11), 120 + 20 * np.sin(x / 2.2 + 0.3 * np.sin(y / 9))
    dots = np.cos(2 * np.pi * x / 2.6) * np.cos(2 * np.pi * y / 2.6) * ((x > 40) & (y > 40))

    def planes(plane: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(plane / 255.0).float().expand(1, 3, 96, 96)

    def most(plane: np.ndarray) -> float:
        return float(finest(planes(plane)[:, 0]).max())

    def price(plane: np.ndarray, start: np.ndarray) -> float:
        return float(weaves(planes(plane), planes(start))[0])

    assert max(most(waves), most(hair), most(np.full((96, 96), 9.0))) < 0.01
    assert 0.15 < most(waves + 2 * dots) < most(waves + 4 * dots) < 1.2
    assert price(waves, waves) == price(hair, waves) == price(dots + waves, dots + waves) == 0.0
    # Dots of four pixels as well, which `finest` calls coarse.
    longer = np.cos(2 * np.pi * x / 5.4) * np.cos(2 * np.pi * y / 5.4) * ((x > 40) & (y > 40))
    assert most(waves + 2 * longer) < 0.08
    assert min(price(waves + 2 * longer, waves), price(waves + 2 * dots, waves)) > 0.3
    # As strong as what was there before, and a fifth stronger.
    assert price(hair + 2.4 * dots, hair + 2 * dots) == 0.0


@pytest.mark.usefixtures("small_scenes")
def test_of_what_is_held_one_half_is_photographs_asked_to_be_crisp(picture_folder, tmp_path):
    pictures = Pictures(picture_folder, tmp_path / "cache", 2, pages=3, resident=True)
    run = DetailRun(replace(RECIPE, pool=8, reuse=2, batch=6), "cpu")
    (photos, half), (every, other) = run.groups(pictures)
    assert isinstance(photos, Photos) and not isinstance(every, Photos) and half == other == 0.5
    assert len(photos.small) == len(every.small) == 3
    assert list(run.pools) == ["photos", "all"] == [name for _, name, _ in run.held(pictures)]
    assert run.step_on(pictures).isfinite()


@pytest.mark.usefixtures("small_scenes")
def test_only_the_other_half_draws_pages_and_diagrams(picture_folder, tmp_path, monkeypatch):
    pictures, run, drawn = Pictures(picture_folder, tmp_path / "cache", 2, pages=3), DetailRun(RECIPE, "cpu"), []
    patches = Pictures.patches

    def noted(self, draw, size, *rest, **more):
        drawn.append((self.pages is None and self.among == [1, 3, 5], size))
        return patches(self, draw, size, *rest, **more)

    monkeypatch.setattr(Pictures, "patches", noted)
    run.groups(pictures)
    assert [sum(size for asked, size in drawn if asked == one) for one in (True, False)] == [2, 2]


def test_without_scenes_every_second_group_is_of_photographs_and_art_and_pays_for_its_grid(picture_folder, tmp_path):
    recipe = Recipe("e", 2, 4, pages=3, patch_sides=(16,), psnr_share=1.0, comb=0.02, **SHAPE)
    recipe = replace(recipe, batch=4, clean_groups=2, damaged=4, damaged_groups=2)
    pictures, run = Pictures(picture_folder, tmp_path / "cache", 2, pages=3), EvenRun(recipe, "cpu")
    groups = [group for group, _ in run.groups(pictures)]
    assert [isinstance(group, Photos) for group in groups] == [False, True, False, True]
    group = groups[1]
    dots = group.clean.clone()
    dots[:, :, ::2, ::2] = 1.0 - dots[:, :, ::2, ::2]
    plain = recipe.loss(0, dots, group.clean)
    assert run.loss(dots, group) > plain + 0.001
    assert run.loss(dots, groups[0]) == recipe.loss(0, dots, groups[0].clean)
    assert run.step_on(pictures).isfinite()


def test_a_folder_without_photographs_and_art_is_refused(picture_folder, tmp_path):
    table = picture_folder / "ATTRIBUTION.tsv"
    table.write_text(table.read_text().replace("\tart\t", "\tdiagram\t"))
    with pytest.raises(ValueError, match="photo, art"):
        Pictures(picture_folder, tmp_path / "cache", 2).textured_only()


def test_mixed_weights_lie_between_under_one_condition():
    one, other = stirred(Architecture(2, 6, 2, conditioned=True)), stirred(Architecture(2, 6, 2))
    with torch.no_grad():
        other.load_state_dict({name: value for name, value in one.state_dict().items() if "cond" not in name})
        other.up.bias += 0.5
    for share in (0.0, 0.25, 1.0):
        found = between(one, other, share)
        np.testing.assert_allclose(found.up.bias.detach(), one.up.bias.detach() + 0.5 * share, atol=1e-6)
        assert (found.cond[0].weight == one.cond[0].weight).all()


def test_the_half_of_a_spectrum_that_is_left_out_is_the_mirror_of_the_other():
    windows = torch.rand(3, SPECTRUM, SPECTRUM, generator=torch.Generator().manual_seed(4))
    whole = torch.fft.fft2(windows).abs().square()
    half = torch.view_as_real(torch.fft.rfft2(windows)).square().sum(dim=-1)
    torch.testing.assert_close(torch.cat([half, mirrored(half)], dim=2), whole, atol=1e-3, rtol=1e-4)
