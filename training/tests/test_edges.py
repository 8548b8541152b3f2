"""Edges laid on their own course, as the service does it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from upscale_training.condition import NONE, source_inputs
from upscale_training.edges import amount, evened, sharpened, steps

HEIGHT, WIDTH = 80, 96


def edge(tremble: float) -> Tensor:
    """Brightness of a slanted edge that lies beside its course by a sine of `tremble` pixels."""
    y, x = torch.meshgrid(torch.arange(HEIGHT).float(), torch.arange(WIDTH).float(), indexing="ij")
    beside = x - 48.0 - 0.3 * (y - 40.0) + tremble * (y / 30.0 * 2.0 * math.pi).sin()
    return 0.25 + 0.5 * (beside / 1.5).sigmoid()


@pytest.mark.parametrize(
    ("scale", "softness", "y", "x", "step"),
    [
        (4, 0.0, 10, 37, -0.01619),
        (4, 0.0, 40, 47, -0.02937),
        (4, 0.0, 55, 52, 0.02675),
        (4, 0.0, 79, 60, 0.0),
        (4, 0.0, 3, 3, 0.0),
        (4, 0.275, 40, 47, -0.04707),
        (4, 0.6, 10, 37, -0.04117),
        (4, 0.6, 40, 47, -0.06568),
        (4, 0.6, 55, 52, 0.06011),
        (2, 0.0, 10, 37, -0.01056),
        (2, 0.0, 40, 50, -0.00827),
        (2, 0.0, 55, 52, 0.00943),
        (2, 0.6, 40, 50, -0.01266),
    ],
)
def test_steps_are_the_services(scale: int, softness: float, y: int, x: int, step: float):
    """The numbers stand in upscale_image/src/edges/tests.rs as well."""
    made = steps(edge(1.5)[None, None], scale, source_inputs(0.0, softness)[1])
    assert float(made[0, 0, y, x]) == pytest.approx(step, abs=3e-4)


@pytest.mark.parametrize(("y", "x", "step"), [(10, 5, 0.0), (16, 24, -0.0084), (16, 26, 0.011), (0, 42, -0.01998)])
def test_pictures_are_sharpened_as_the_service_does_it(y: int, x: int, step: float):
    """The numbers stand in upscale_image/src/sharpen/tests.rs as well."""
    down, across = torch.meshgrid(torch.arange(32).float(), torch.arange(48).float(), indexing="ij")
    made = 0.1 + 0.5 * ((across - 20.0 - 0.3 * down) / 1.2).sigmoid() + 0.2 * (-0.5 * (across - 40.0) ** 2).exp()
    made[10, 5] += 0.4
    sharp = sharpened(made[None, None], 0.8)[0, 0]
    assert float(sharp[y, x] - made[y, x]) == pytest.approx(step, abs=1e-5)


def test_crisp_sharpens_more_than_natural_and_soft_pictures_most():
    soft, sharp = (source_inputs(0.0, pixels)[1] for pixels in (0.5, 0.1))
    for softness in (sharp, soft):
        assert 0.0 < amount("natural", 4, softness) < amount("crisp", 4, softness)
        assert not amount("crisp", 2, softness)
    assert amount("crisp", 4, sharp) < amount("crisp", 4, soft)


def test_what_has_no_edge_stays_and_what_trembles_comes_nearer_to_its_course():
    flat = np.full((64, 64, 3), 77, np.uint8)
    assert (evened(flat, 4, NONE) == flat).all()
    straight, trembles = ((edge(by) * 255.0).round().byte()[..., None].expand(-1, -1, 3).numpy() for by in (0.0, 1.0))
    before, after = (np.abs(one.astype(int) - straight)[20:60].mean() for one in (trembles, evened(trembles, 4, NONE)))
    assert after < 0.75 * before
