"""The critic that pools nothing: what it sees that the other cannot, how judgement and error are balanced, when it is
heard. That a training with it can be interrupted is in test_critic.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch.optim import Adam

from test_detail import RECIPE
from upscale_training.adversarial import (
    CRITIC_AGAIN,
    JUDGED,
    SEEN,
    SPECKLE,
    AdversarialRun,
    Judgement,
    PlacesCritic,
    balanced,
)
from upscale_training.critic import Critic, preferred
from upscale_training.data import Pictures
from upscale_training.start import start

CONTENDING = replace(RECIPE, critic=1.0, contrast=0.0, grid=0.03, comb=0.02, lines=0.02, pages=0, patch_sides=(32,))


def test_it_soon_tells_a_grid_from_grain_of_the_same_strength_and_the_pooling_one_does_not():
    base = torch.full((4, 1, 64, 64), 0.5)

    def learnt(critic: torch.nn.Module, judge: Callable[[torch.Tensor], torch.Tensor]) -> float:
        draw, learning = torch.Generator().manual_seed(1), Adam(critic.parameters(), lr=1e-3)
        for _ in range(81):
            grain = 0.02 * torch.randn(4, 1, 64, 64, generator=draw)
            drawn = 0.02 * torch.randn(4, 1, 4, 4, generator=draw).tile(1, 1, 16, 16)
            learning.zero_grad()
            loss = preferred(judge(base + grain), judge(base + drawn))
            loss.backward()
            learning.step()
        return loss.item()

    torch.manual_seed(1)
    places, pooling, ones = PlacesCritic(4), Critic(), torch.ones(4, 1, 64, 64)
    by_places = learnt(places, lambda one: places(one, base)[0])
    by_pooling = learnt(pooling, lambda one: pooling(*(x.expand(-1, 3, -1, -1) for x in (one, base)), ones)[0])
    assert by_places < 0.1 and by_pooling > 0.25, (by_places, by_pooling)


def test_judgement_and_layers_count_by_the_norm_of_the_errors_gradient():
    made = torch.rand(2, 3, 8, 8, requires_grad=True)
    left, right = made[..., :4], made[..., 4:]
    error, judgement = left.square().sum(), Judgement(1e-3 * right[:, :, :4].sum(), 50.0 * right[:, :, 4:].sum())
    wanted = balanced(error, judgement, made)
    norm = (2.0 * left).norm()
    torch.testing.assert_close(wanted[..., :4], 2.0 * left)
    torch.testing.assert_close(wanted[:, :, :4, 4:].norm(), JUDGED * norm)
    torch.testing.assert_close(wanted[:, :, 4:, 4:].norm(), SEEN * norm)


@pytest.mark.usefixtures("small_scenes")
def test_while_the_critic_is_alone_the_network_stays_and_then_it_moves(picture_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("upscale_training.adversarial.CRITIC_ALONE", 2)
    pictures, run = Pictures(picture_folder, tmp_path / "cache", 2), AdversarialRun(CONTENDING, "cpu")
    with torch.no_grad():
        run.network.up.weight.normal_(std=0.02)
    before = [value.clone() for value in run.network.state_dict().values()]
    critic = [value.clone() for value in run.critic.state_dict().values()]
    for _ in range(2):
        run.step_on(pictures)
    assert all((one == other).all() for one, other in zip(run.network.state_dict().values(), before, strict=True))
    assert any((one != other).any() for one, other in zip(run.critic.state_dict().values(), critic, strict=True))
    run.step_on(pictures)
    moved = {name for name, one in run.network.state_dict().items() if (one != before.pop(0)).any()}
    assert "up.weight" in moved and not any(name.startswith("cond") for name in moved)


@pytest.mark.usefixtures("small_scenes")
def test_a_start_keeps_network_and_critic_for_the_next_training(picture_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("upscale_training.adversarial.CRITIC_ALONE", 1)
    pictures, run = Pictures(picture_folder, tmp_path / "cache", 2), AdversarialRun(CONTENDING, "cpu")
    for _ in range(2):
        run.step_on(pictures)
    run.save(tmp_path / "run.pt")
    start(tmp_path / "run.pt", tmp_path / "kept.safetensors", "0000000")
    kept, critic = tmp_path / "kept.safetensors", tmp_path / "kept-critic.safetensors"
    following = AdversarialRun(replace(CONTENDING, start_from=str(kept), critic_from=str(critic)), "cpu")
    assert following.alone == CRITIC_AGAIN
    for one, other in ((following.network, run.average), (following.critic, run.critic)):
        for name, value in one.state_dict().items():
            torch.testing.assert_close(value, other.state_dict()[name], atol=1e-3, rtol=1e-3)


def test_grain_has_its_price_where_the_original_is_flat():
    run, draw = (
        AdversarialRun(replace(CONTENDING, grid=0.0, comb=0.0, lines=0.0), "cpu"),
        torch.Generator().manual_seed(2),
    )
    flat = torch.full((1, 3, 64, 64), 0.5)
    rough = flat + 0.1 * torch.randn(1, 1, 64, 64, generator=draw)
    grain = torch.randn(1, 1, 64, 64, generator=draw) / 255.0
    # Of grain of a level a Gaussian of two pixels leaves 0.92 of the power; nothing of a shift.
    assert 0.8 * SPECKLE < run.prices(flat + grain, flat) < SPECKLE
    assert run.prices(flat + 0.1, flat) < 1e-6 and run.prices(rough + grain, rough) < 1e-6


def test_a_recipe_with_two_judges_is_refused():
    with pytest.raises(ValueError, match="neither contrast"):
        AdversarialRun(RECIPE, "cpu")
