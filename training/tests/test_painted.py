"""Painted originals, and what a network loses beside them."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch.nn import functional

from test_detail import RECIPE
from upscale_training.data import Pictures
from upscale_training.detail import Photos
from upscale_training.mixture import Group
from upscale_training.painted import LEVELS, PaintedRun, cost, painted, without_texture
from upscale_training.spectrum import luma

CONFIG = replace(RECIPE, contrast=0.0)


def edge(slope: float, height: float = 0.5) -> torch.Tensor:
    """RGB [1, 3, 48, 48], dark on the left and bright on the right, `slope` pixels wide."""
    across = ((torch.arange(48.0) - 23.5) / slope).sigmoid() * height + 0.25
    return across.expand(1, 3, 48, 48).contiguous()


def test_weak_texture_goes_and_strong_texture_stays():
    noise = torch.randn(1, 1, 48, 48, generator=torch.Generator().manual_seed(1))
    weak, strong = (0.5 + share * LEVELS * noise for share in (0.5, 6.0))
    assert without_texture(weak).std() < 0.45 * weak.std()
    assert without_texture(strong).std() > 0.85 * strong.std()


def test_the_obvious_bilateral_filter_is_the_same():
    plane = torch.rand(1, 1, 12, 12, generator=torch.Generator().manual_seed(2))
    found = without_texture(plane)[0, 0]
    for y, x in ((5, 5), (6, 4)):
        total = weights = 0.0
        for other_y in range(y - 3, y + 4):
            for other_x in range(x - 3, x + 4):
                apart = ((plane[0, 0, other_y, other_x] - plane[0, 0, y, x]) * 255.0 / 6.0) ** 2
                weight = torch.exp(-0.5 * (apart + ((other_y - y) ** 2 + (other_x - x) ** 2) / 4.0))
                total, weights = total + weight * plane[0, 0, other_y, other_x], weights + weight
        torch.testing.assert_close(found[y, x], total / weights)


def test_edges_become_steeper_without_rims_and_colours_move_with_them():
    soft = edge(0.8) * torch.tensor([1.0, 0.8, 0.6])[:, None, None]
    made = painted(soft)
    assert (luma(made)[..., 24] - luma(made)[..., 23]).min() > 1.3 * (luma(soft)[..., 24] - luma(soft)[..., 23]).max()
    assert luma(made).max() <= luma(soft).max() + 1e-5 and luma(made).min() >= luma(soft).min() - 1e-5
    moved = made - soft
    torch.testing.assert_close(moved[:, :1].expand_as(moved), moved, atol=1e-6, rtol=0.0)


def test_an_edge_in_one_of_two_places_costs_less_than_the_slope_between():
    places = [edge(0.2).roll(shift, 3) for shift in (-2, 2)]
    between = (places[0] + places[1]) * 0.5
    in_one, in_none = (sum(cost(made, place, 2) for place in places) for made in (places[0], between))
    assert in_one < 0.95 * in_none
    squares = [sum((made - place).square().mean() for place in places) for made in (places[0], between)]
    assert squares[0] > 1.5 * squares[1]


def test_photographs_are_asked_for_painted_originals_and_all_else_for_the_restoring_answer():
    run, draw = PaintedRun(CONFIG, "cpu"), torch.Generator().manual_seed(3)
    clean = edge(0.8)[..., 8:40, 8:40].repeat(2, 1, 1, 1)
    clean = clean + 0.005 * torch.randn(clean.shape, generator=draw)
    small = functional.avg_pool2d(clean, 2)
    group = Group(small, clean, torch.zeros(6))
    restored, photos = run.taught(run.restoring, group), Photos(**vars(group))
    assert run.loss(painted(clean), photos) < run.loss(clean, photos) < 1.0
    assert run.loss(restored, group) == 0.0 and run.loss(painted(clean), group) != 0.0
    # A little less than what the restoring network itself costs, or what is nearly right would count without end.
    assert 0.5 < run.loss(restored, photos) < 1.0


def test_half_of_a_step_is_photographs_and_the_condition_stays(picture_folder, tmp_path):
    run = PaintedRun(replace(CONFIG, scenes=2, crops=2), "cpu")
    pictures = Pictures(picture_folder, tmp_path, 2)
    kinds = [type(group) for group, _ in run.groups(pictures)]
    assert kinds == [Photos, Group]
    condition, last = run.network.cond[0].weight.clone(), run.network.up.weight.clone()
    run.step_on(pictures)
    assert torch.equal(run.network.cond[0].weight, condition) and not torch.equal(run.network.up.weight, last)
