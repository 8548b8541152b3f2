"""The critic: what it asks for, where it does not look, and that a training with it can be interrupted."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional
from torch.optim import Adam

from test_adversarial import CONTENDING
from test_detail import RECIPE
from upscale_training.adversarial import AdversarialRun
from upscale_training.critic import Critic, counting, preferred, shifted, unlike
from upscale_training.data import Pictures
from upscale_training.detail import DetailRun

JUDGING = replace(RECIPE, critic=0.01, comb=0.02, lines=0.1, patch_sides=(32,))


def textures(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures with fine detail and what is left of them without it, [4, 3, 64, 64]."""
    picture = torch.rand(4, 3, 64, 64, generator=torch.Generator().manual_seed(seed))
    return picture, functional.avg_pool2d(picture, 9, 1, 4, count_include_pad=False)


def test_it_learns_to_prefer_the_original():
    torch.manual_seed(1)
    critic = Critic()
    learning = Adam(critic.parameters(), lr=1e-3)
    for seed in range(30):
        picture, base = textures(seed)
        counts = counting(picture)
        learning.zero_grad()
        loss = preferred(critic(picture, base, counts)[0], critic(base, base, counts)[0])
        loss.backward()
        learning.step()
    assert loss < 0.3 < preferred(torch.zeros(1), torch.zeros(1))
    picture, base = textures(99)
    seen = critic(picture, base, counting(picture))[1]
    assert unlike(seen, seen) == 0.0 < unlike(critic(base, base, counting(picture))[1], seen)


def test_its_wishes_follow_no_grid():
    """What it wants of each of the 16 places within a source pixel is the same in the mean over many pictures."""
    torch.manual_seed(2)
    critic, wishes = Critic(), []
    for seed in range(24):
        base = textures(seed)[1].requires_grad_()
        critic(base, base.detach(), torch.ones(4, 1, 64, 64))[0].sum().backward()
        # Away from the edges, where zeros beyond them are seen.
        wishes.append(base.grad[:, :, 24:-24, 24:-24])
    places = functional.pixel_unshuffle(torch.cat(wishes).mean(dim=1, keepdim=True), 8).mean(dim=(0, 2, 3))
    strided = functional.conv_transpose2d(torch.ones(1, 1, 8, 8), torch.rand(1, 1, 3, 3), stride=2)[:, :, 2:-2, 2:-2]
    ratio = (places.std() / places.abs().mean()).item()
    assert ratio < 0.1 < (strided.std() / strided.mean()).item(), ratio


def test_grain_is_not_looked_at():
    draw = torch.Generator().manual_seed(3)
    flat, noise = torch.full((1, 3, 64, 64), 0.5), torch.randn(1, 1, 64, 64, generator=draw)
    assert counting(flat).max() == 0.0
    assert counting(flat + noise * 0.004).max() < 0.1
    assert counting(flat + noise * 0.1).mean() > 0.9
    critic, counts = Critic().eval(), counting(flat)
    assert (critic(flat + noise * 0.1, flat, counts)[0] == critic(flat, flat, counts)[0]).all()


def test_windows_are_off_by_less_than_a_source_pixel_and_alike():
    rows = torch.arange(32.0).view(1, 1, 32, 1).expand(1, 1, 32, 32)
    draw, seen = torch.Generator().manual_seed(4), set()
    for _ in range(40):
        one, other = shifted([rows, rows + 1.0], 4, draw)
        assert one.shape == (1, 1, 28, 28) and (other - one == 1.0).all()
        seen.add(one[0, 0, 0, 0].item())
    assert seen == {0.0, 1.0, 2.0, 3.0}


@pytest.mark.usefixtures("small_scenes")
@pytest.mark.parametrize(
    ("kind", "recipe", "module"), [(DetailRun, JUDGING, "detail"), (AdversarialRun, CONTENDING, "adversarial")]
)
def test_a_training_that_was_interrupted_ends_where_an_unbroken_one_does(
    kind, recipe, module, picture_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(f"upscale_training.{module}.CRITIC_ALONE", 1)
    pictures = Pictures(picture_folder, tmp_path / "cache", 2, pages=recipe.pages)
    whole, first, second = (kind(recipe, "cpu") for _ in range(3))
    for _ in range(4):
        whole.step_on(pictures)
    for _ in range(2):
        first.step_on(pictures)
    first.save(tmp_path / "run.pt")
    second.restore(tmp_path / "run.pt")
    for _ in range(2):
        second.step_on(pictures)
    for part in ("network", "critic"):
        ends = (getattr(run, part).state_dict() for run in (whole, second))
        assert all((one == other).all() for one, other in zip(*(end.values() for end in ends), strict=True))


@pytest.mark.usefixtures("small_scenes")
def test_it_is_first_heard_when_it_has_learnt(picture_folder, tmp_path):
    pictures, run = Pictures(picture_folder, tmp_path / "cache", 2, pages=3), DetailRun(JUDGING, "cpu")
    group = run.groups(pictures)[0][0]
    assert run.judged(group.clean, group) == 0.0
    run.step = 100
    assert run.judged(functional.avg_pool2d(group.clean, 3, 1, 1), group) > 0.5
