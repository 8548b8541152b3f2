"""Crisper detail: what the loss wants, whom it leaves alone, what the gates say."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from test_niqe import photograph, spoilt
from torch.nn.functional import avg_pool2d

from conftest import drawn_picture
from test_network import stirred
from upscale_training.bed import DAMAGES
from upscale_training.data import Pictures
from upscale_training.detail import DetailRun, Photos, grid, lacking, too_smooth
from upscale_training.detail_gates import marks, mixed, photographs, report
from upscale_training.mixture import Group
from upscale_training.network import Architecture
from upscale_training.niqe import fit
from upscale_training.train import Recipe

SHAPE = {"channels": 6, "blocks": 2, "conditioned": True}
RECIPE = Recipe("d", 2, 4, batch=4, damaged=4, pages=3, patch_sides=(16,), psnr_share=1.0, contrast=0.06, **SHAPE)


def test_smoothness_costs_and_contrast_of_the_right_size_does_not():
    draw = torch.Generator().manual_seed(1)
    clean = torch.rand(2, 3, 48, 48, generator=draw)
    smooth = avg_pool2d(clean, 3, 1, 1)
    assert too_smooth(clean, clean) == 0.0
    assert too_smooth(smooth, clean) > 0.3
    # Other detail of the same strength: nobody asks for the very same.
    assert too_smooth(torch.rand(2, 3, 48, 48, generator=draw), clean) < 0.5 * too_smooth(smooth, clean)


def test_a_grid_is_no_contrast():
    draw = torch.Generator().manual_seed(2)
    clean = torch.rand(2, 3, 96, 96, generator=draw) * 0.2 + 0.4
    smooth = avg_pool2d(clean, 3, 1, 1)
    drawn = torch.randn(1, 1, 4, 4, generator=draw).tile(1, 1, 24, 24) * 0.03
    # By contrast alone a grid is better than none, which is how one came to be drawn.
    assert too_smooth(smooth + drawn, clean) < too_smooth(smooth, clean)
    assert lacking(smooth + drawn, clean, 4) > lacking(smooth, clean, 4) + 1.0
    assert grid(drawn.expand(1, 3, -1, -1), 4) > 1.0
    # What lies anywhere, and what is the same everywhere, are none.
    noise = torch.randn(1, 3, 96, 96, generator=draw) * 0.03
    assert grid(noise, 4) < 0.1 and grid(torch.full((1, 3, 96, 96), 0.5), 4) == 0.0


def test_pages_are_never_asked_for_contrast(picture_folder, tmp_path):
    pictures, run = Pictures(picture_folder, tmp_path / "cache", 2, pages=3), DetailRun(RECIPE, "cpu")
    groups = [group for group, _ in run.groups(pictures)]
    assert [isinstance(group, Photos) for group in groups] == [True, True, False, False]
    group = groups[0]
    output = avg_pool2d(group.clean, 3, 1, 1)
    plain = RECIPE.loss(0, output, group.clean)
    assert run.loss(output, group) > plain + 0.001
    assert run.loss(output, Group(group.small, group.clean, group.condition)) == plain
    assert pictures.pages is not None
    before = [value.clone() for value in run.network.parameters()]
    assert run.turn(pictures).isfinite()
    assert any((old != new).any() for old, new in zip(before, run.network.parameters(), strict=True))


def test_only_the_groups_with_pages_draw_them(picture_folder, tmp_path, monkeypatch):
    class Drawn(Exception):
        pass

    def tell(self, *rest):
        raise Drawn(self.pages is None)

    pictures, run, told = Pictures(picture_folder, tmp_path / "cache", 2, pages=3), DetailRun(RECIPE, "cpu"), []
    monkeypatch.setattr(Pictures, "patches", tell)
    for draw, size in run.plan():
        with pytest.raises(Drawn) as drawn:
            draw(pictures, np.random.default_rng(1), size, 16, run.shares)
        told += drawn.value.args
    assert told == [True, True, False, False]


def test_mixed_weights_lie_between():
    shape = Architecture(2, 6, 2, conditioned=True)
    one, other = stirred(shape), stirred(shape)
    with torch.no_grad():
        other.up.bias += 0.5
    for strength in (0.0, 0.25, 1.0):
        np.testing.assert_allclose(
            mixed(one, other, strength).up.bias.detach(), one.up.bias.detach() + 0.5 * strength, atol=1e-6
        )


def test_the_gates_are_those_of_the_design(picture_folder):
    shape = Architecture(2, 6, 2, conditioned=True)
    general = stirred(shape)
    blurred = mixed(general, general, 0.0)
    with torch.no_grad():
        blurred.up.bias += 0.3
    photos, natural = [photograph(seed) for seed in (50, 51)], fit(photograph(seed) for seed in range(4))
    lines, gates = report({"general": general, "detail 0.5": blurred}, photos, [drawn_picture(1)], natural)
    assert len(gates) == 6 and len(lines) == 2 + 4
    assert all(not holds for gate, holds in gates if "dB lost" in gate), "a third of all levels is over every bound"
    _, same = report({"general": general, "detail 0.5": general}, photos, [drawn_picture(1)], natural)
    # Nothing is lost; and nothing is lower than itself.
    assert [holds for _, holds in same] == [True, False, True] * 2
    found = marks(general, [photos[0], spoilt(photos[0], noise=20.0)], DAMAGES[0], natural)
    assert found.shape == (2, 2) and found[0, 1] < found[1, 1]
    assert len(list(photographs(picture_folder))) == 0
