"""Two teachers: who teaches what."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from test_detail import RECIPE
from upscale_training.apart import ApartRun
from upscale_training.data import Pictures
from upscale_training.detail import Photos
from upscale_training.mixture import Group

TAUGHT = replace(RECIPE, contrast=0.0)


def test_photographs_are_taught_by_the_start_and_all_else_by_the_restoring_network():
    run, draw = ApartRun(TAUGHT, "cpu"), torch.Generator().manual_seed(1)
    small, clean = (torch.rand(2, 3, side, side, generator=draw) for side in (16, 32))
    group = Group(small, clean, torch.zeros(6))
    with torch.no_grad():
        run.start.up.bias += 0.1
    crisp, restored = run.taught(run.start, group), run.taught(run.restoring, group)
    photos = Photos(**vars(group))
    assert run.loss(crisp, photos) == 0.0 and run.loss(restored, group) == 0.0
    # Nothing of what is crisp is left: all of the difference.
    assert run.loss(restored, photos) > 0.9
    assert run.loss(crisp, group) > 0.01
    assert ApartRun(replace(TAUGHT, comb=0.1), "cpu").loss(crisp, photos) > 0.0


@pytest.mark.usefixtures("small_scenes")
def test_a_step_leaves_teachers_and_condition_as_they_were(picture_folder, tmp_path):
    pictures, run = Pictures(picture_folder, tmp_path / "cache", 2, pages=3), ApartRun(TAUGHT, "cpu")
    fixed = [run.start, run.restoring, run.network.cond]
    before = [value.clone() for part in fixed for value in part.parameters()]
    assert run.step_on(pictures).isfinite() and run.step_on(pictures).isfinite()
    after = [value for part in fixed for value in part.parameters()]
    assert all((one == other).all() for one, other in zip(before, after, strict=True))


def test_a_recipe_that_asks_for_more_is_refused():
    with pytest.raises(ValueError, match="contrast"):
        ApartRun(RECIPE, "cpu")
