"""Two teachers: who teaches what."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from test_detail import RECIPE
from upscale_training.apart import NOISE, ApartRun, textured
from upscale_training.condition import source_inputs
from upscale_training.data import Pictures
from upscale_training.detail import Photos
from upscale_training.flat import calm
from upscale_training.mixture import Group

TAUGHT = replace(RECIPE, contrast=0.0)


def test_photographs_are_taught_by_the_start_and_all_else_by_the_restoring_network():
    run, draw = ApartRun(TAUGHT, "cpu"), torch.Generator().manual_seed(1)
    small, clean = (torch.rand(2, 3, side, side, generator=draw) for side in (16, 32))
    group = Group(small, clean, torch.zeros(6))
    # As sharp as the restoring network and brighter: no grid.
    run.crisp_teacher = copy.deepcopy(run.restoring)
    with torch.no_grad():
        run.crisp_teacher.up.bias += 0.1
    crisp, restored = run.taught(run.crisp_teacher, group), run.taught(run.restoring, group)
    photos = Photos(**vars(group))
    assert run.loss(crisp, photos) < 1e-6 and run.loss(restored, group) == 0.0
    # Nothing of what is crisp is left: all of the difference.
    assert run.loss(restored, photos) > 0.9
    assert run.loss(crisp, group) > 0.01
    assert ApartRun(replace(TAUGHT, comb=0.1), "cpu").loss(crisp, photos) > 0.0


def test_a_grid_costs_photographs_more_than_as_much_of_anything_else():
    run, draw = ApartRun(TAUGHT, "cpu"), torch.Generator().manual_seed(4)
    small, clean = (torch.rand(2, 3, side, side, generator=draw) for side in (16, 32))
    photos = Photos(small, clean, torch.zeros(6))
    crisp = run.taught(run.crisp_teacher, photos)
    woven = torch.full((1, 1, 32, 32), -0.01)
    woven[..., ::2, ::2] = 0.03
    strewn = woven.flatten()[torch.randperm(1024, generator=draw)].view_as(woven)
    assert run.loss(crisp + woven, photos) > run.loss(crisp + strewn, photos) + 1.0


def test_steady_asks_for_lines_as_in_noisy_pictures_and_for_texture_as_read():
    run, draw = ApartRun(replace(TAUGHT, steady=8.0), "cpu"), torch.Generator().manual_seed(2)
    run.crisp_teacher = run.restoring
    small, noise = (torch.rand(1, 3, side, side, generator=draw) for side in (32, 64))
    line, noisy = torch.zeros(1, 3, 64, 64), torch.zeros(6)
    line[..., 30:34], noisy[NOISE] = 1.0, source_inputs(8.0, 0.0)[0]
    groups = (Group(small, line, condition) for condition in (torch.zeros(6), noisy))
    as_read, as_noisy = (run.taught(run.crisp_teacher, group) for group in groups)
    assert (as_read - as_noisy).abs().mean() > 1e-3
    for clean, near, far in ((line, as_noisy, as_read), (noise, as_read, as_noisy)):
        taught = run.crisp(Group(small, clean, torch.zeros(6)))
        assert (taught - near).abs().mean() < 0.2 * (taught - far).abs().mean()
    # A picture that reads noisier keeps what it reads.
    noisy[NOISE] = source_inputs(20.0, 0.0)[0]
    group = Group(small, line, noisy)
    assert (run.crisp(group) == run.taught(run.crisp_teacher, group)).all()


def test_texture_is_neither_an_edge_nor_grain():
    flat = torch.full((1, 3, 64, 64), 0.5)
    edge, draw = flat.clone(), torch.Generator().manual_seed(3)
    edge[..., 32:] = 0.9
    drawn = torch.randn(1, 1, 64, 64, generator=draw)
    assert textured(flat, 4).max() == 0.0
    assert textured(edge, 4).max() < 0.01
    assert textured(flat + drawn * 0.002, 4).mean() < 0.1
    assert textured(flat + drawn * 0.05, 4).mean() > 0.8


def test_where_the_original_is_flat_the_restoring_network_teaches_photographs():
    run, draw = ApartRun(TAUGHT, "cpu"), torch.Generator().manual_seed(5)
    small, clean = torch.rand(1, 3, 32, 32, generator=draw), torch.full((1, 3, 64, 64), 0.5)
    with torch.no_grad():
        run.crisp_teacher.up.bias += 0.1
    group = Photos(small, clean, torch.zeros(6))
    crisp, restored = run.taught(run.crisp_teacher, group), run.taught(run.restoring, group)
    assert run.loss(restored, group) < 0.1 * run.loss(crisp, group)
    grain = torch.randn(1, 1, 64, 64, generator=draw) / 255.0
    assert run.loss(restored + grain, group) > run.loss(restored + 1.0 / 255.0, group) + 0.4
    clean[..., 32:] = torch.rand(1, 3, 64, 32, generator=draw)
    share = calm(clean, 2)
    assert share[..., :12].min() > 0.99 and share[..., 32:].max() < 0.01


@pytest.mark.usefixtures("small_scenes")
def test_a_step_leaves_teachers_and_condition_as_they_were(picture_folder, tmp_path):
    pictures, run = Pictures(picture_folder, tmp_path / "cache", 2, pages=3), ApartRun(TAUGHT, "cpu")
    fixed = [run.crisp_teacher, run.restoring, run.network.cond]
    before = [value.clone() for part in fixed for value in part.parameters()]
    assert run.step_on(pictures).isfinite() and run.step_on(pictures).isfinite()
    after = [value for part in fixed for value in part.parameters()]
    assert all((one == other).all() for one, other in zip(before, after, strict=True))


def test_a_recipe_that_asks_for_more_is_refused():
    with pytest.raises(ValueError, match="contrast"):
        ApartRun(RECIPE, "cpu")
