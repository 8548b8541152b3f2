"""A teacher that is told too much, and a student that is not."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from test_detail import RECIPE
from upscale_training.condition import CAMERA_NOISE, CLEAN, UNKNOWN, jpeg_condition, source_inputs
from upscale_training.data import Pictures
from upscale_training.detail import Photos
from upscale_training.mixture import Group
from upscale_training.overstated import (
    JPEGS_NOISE,
    JPEGS_SOFTNESS,
    SOFTER,
    SOFTEST,
    OverstatedRun,
    as_served,
    overstated,
)

TAUGHT = replace(RECIPE, contrast=0.0)


def read(file: tuple[float, ...], noise: float, softness: float) -> torch.Tensor:
    return torch.tensor([*file, *source_inputs(noise, softness)])


def test_jpegs_are_called_noisy_and_soft_and_stay_what_is_worse():
    file = jpeg_condition(75, 1.0)
    torch.testing.assert_close(overstated(read(file, 0.5, 0.1)), read(file, JPEGS_NOISE, JPEGS_SOFTNESS))
    assert (overstated(read(file, 9.0, 1.1)) == read(file, 9.0, 1.1)).all()


@pytest.mark.parametrize("file", [CLEAN, UNKNOWN])
def test_other_soft_pictures_are_called_softer_and_the_softest_less_so(file):
    more = {softness: overstated(read(file, 0.0, softness)) for softness in (0.1, 0.5, 0.9)}
    assert (more[0.1] == read(file, 0.0, 0.1)).all()
    torch.testing.assert_close(more[0.5], read(file, 0.0, 0.5 + SOFTER))
    torch.testing.assert_close(more[0.9], read(file, 0.0, 0.9 + SOFTEST * SOFTER))
    noisy = read(file, CAMERA_NOISE + 1.0, 0.5)
    assert (overstated(noisy) == noisy).all()


def test_what_is_not_known_of_a_lossless_picture_is_not_overstated():
    silent = torch.tensor([*UNKNOWN, *source_inputs(None, None)])
    assert (overstated(silent) == silent).all() and (as_served(silent, 4) == silent).all()


def test_soft_lossless_pictures_are_told_as_the_service_tells_them_and_overstated_after_that():
    served = as_served(read(CLEAN, 0.0, 0.5), 4)
    torch.testing.assert_close(served, read(UNKNOWN, CAMERA_NOISE, 0.5))
    torch.testing.assert_close(overstated(served), read(UNKNOWN, CAMERA_NOISE, 0.5 + SOFTER))


def test_the_teacher_of_photographs_alone_is_told_too_much():
    run, draw = OverstatedRun(TAUGHT, "cpu"), torch.Generator().manual_seed(1)
    run.crisp_teacher = copy.deepcopy(run.restoring)
    small, clean = (torch.rand(2, 3, side, side, generator=draw) for side in (16, 32))
    group = Group(small, clean, read(jpeg_condition(75, 1.0), 0.5, 0.1))
    as_read, asked = (
        run.taught(run.restoring, replace(group, condition=one))
        for one in (group.condition, overstated(group.condition))
    )
    assert (as_read - asked).abs().mean() > 1e-3
    photos = Photos(**vars(group))
    assert run.loss(asked, photos) < run.loss(as_read, photos)
    assert run.loss(as_read, group) == 0.0 != run.loss(asked, group)


def test_no_photograph_is_among_what_is_left_alone(picture_folder, tmp_path):
    pictures = Pictures(picture_folder, tmp_path, 2)
    left = OverstatedRun(TAUGHT, "cpu").left_alone(pictures)
    assert left.among == pictures.untextured and not set(left.among) & set(pictures.textured)
    kinds = [type(group) for group, _ in OverstatedRun(replace(TAUGHT, scenes=2, crops=2), "cpu").groups(pictures)]
    assert kinds == [Photos, Group]


def test_a_folder_of_photographs_alone_has_nothing_to_leave_alone(picture_folder, tmp_path):
    table = picture_folder / "ATTRIBUTION.tsv"
    table.write_text(table.read_text().replace("\tdiagram\t", "\tphoto\t"))
    with pytest.raises(ValueError, match="photo, art"):
        Pictures(picture_folder, tmp_path / "cache", 2).untextured_only()
