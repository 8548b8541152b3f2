"""Edges laid on their own course, as the service does it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from upscale_training.edges import evened, steps

HEIGHT, WIDTH = 80, 96


def edge(tremble: float) -> Tensor:
    """Brightness of a slanted edge that lies beside its course by a sine of `tremble` pixels."""
    y, x = torch.meshgrid(torch.arange(HEIGHT).float(), torch.arange(WIDTH).float(), indexing="ij")
    beside = x - 48.0 - 0.3 * (y - 40.0) + tremble * (y / 30.0 * 2.0 * math.pi).sin()
    return 0.25 + 0.5 * (beside / 1.5).sigmoid()


@pytest.mark.parametrize(
    ("scale", "y", "x", "step"),
    [
        (4, 10, 37, -0.01118),
        (4, 40, 47, -0.03064),
        (4, 55, 52, 0.02899),
        (4, 79, 60, 0.0),
        (4, 3, 3, 0.0),
        (2, 10, 37, -0.0068),
        (2, 40, 50, -0.00501),
        (2, 55, 52, 0.00663),
    ],
)
def test_steps_are_the_services(scale: int, y: int, x: int, step: float):
    """The numbers stand in upscale_image/src/edges/tests.rs as well."""
    assert float(steps(edge(1.5)[None, None], scale)[0, 0, y, x]) == pytest.approx(step, abs=3e-4)


def test_what_has_no_edge_stays_and_what_trembles_comes_nearer_to_its_course():
    flat = np.full((64, 64, 3), 77, np.uint8)
    assert (evened(flat, 4) == flat).all()
    straight, trembles = ((edge(by) * 255.0).round().byte()[..., None].expand(-1, -1, 3).numpy() for by in (0.0, 1.0))
    before, after = (np.abs(one.astype(int) - straight)[20:60].mean() for one in (trembles, evened(trembles, 4)))
    assert after < 0.75 * before
