"""Straight edges: where they are, and that a trembling one is measured."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from upscale_training.spectrum import luma
from upscale_training.straight import averaged, course, steep, straightened, trembling

SIDE, SLANT = 96, 0.3


def edge(tremble: float, width: float = 1.5) -> Tensor:
    """A slanted edge [1, 3, h, w] that lies beside its course by a sine of that amplitude, in pixels."""
    down, across = torch.meshgrid(torch.arange(SIDE).float(), torch.arange(SIDE).float(), indexing="ij")
    beside = across - SIDE / 2 - SLANT * (down - SIDE / 2) + tremble * (down / 30.0 * 2.0 * math.pi).sin()
    return (0.25 + 0.5 * (beside / width).sigmoid()).expand(1, 3, -1, -1)


def inner(picture: Tensor) -> Tensor:
    return picture[..., 30:-30, 30:-30]


def test_the_course_runs_along_the_edge_and_an_average_along_it_is_the_edge():
    straight = edge(0.0)
    x, y = inner(course(luma(straight)))[0].flatten(1)
    assert torch.allclose((x / y), torch.tensor(SLANT), atol=0.02)
    assert (inner(averaged(straight, course(luma(straight)))) - inner(straight)).abs().max() < 0.01


def test_straight_edges_are_found_and_texture_and_nothing_are_none():
    at_edge = straightened(edge(0.0), edge(0.0))[2][0, 0, SIDE // 2, SIDE // 2]
    texture = 0.5 + 0.1 * torch.randn(1, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(1))
    assert at_edge > 0.9
    assert straightened(texture, texture)[2].mean() < 0.1
    assert straightened(torch.full_like(texture, 0.5), torch.full_like(texture, 0.5))[2].max() < 0.1


@pytest.mark.parametrize("amplitude", [0.5, 1.0])
def test_trembling_is_in_output_pixels(amplitude: float):
    moved, slope = trembling(edge(amplitude), edge(0.0))
    # A sine's root of the mean square, across the slant; what an average over some 60 pixels leaves of it counts not.
    expected = amplitude / math.sqrt(2.0) / math.hypot(1.0, SLANT)
    assert float((moved / slope).sqrt()) == pytest.approx(expected, rel=0.25)
    moved, slope = trembling(edge(0.0), edge(0.0))
    assert float((moved / slope).sqrt()) < 0.1


def test_an_edge_twice_as_wide_is_half_as_steep():
    assert steep(edge(0.0), edge(0.0)) == 1.0
    assert steep(edge(0.0, width=6.0), edge(0.0, width=3.0)) == pytest.approx(0.5, abs=0.02)
    nothing = torch.full((1, 3, SIDE, SIDE), 0.5)
    assert steep(nothing, nothing) == 1.0
