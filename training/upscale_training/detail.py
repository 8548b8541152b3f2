"""Trains crisper detail from a finished network: `python -m upscale_training.detail CONFIG --data FOLDER`.

A network trained for the smallest square error makes textures too smooth: of all that could be there it draws the
mean. Here it is asked as well for as much local contrast as the photograph has, in three bands of fine detail; never
on pages of text, where contrast that is not in the file would be another letter. What repeats with every input pixel
has contrast too and costs the network nothing to draw: it is punished by itself. With `critic` in the recipe a second
network judges as well (critic.py).
look_gates.py says whether what comes of it may ship.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from .critic import Critic, counting, preferred, shifted, unlike
from .data import Pictures
from .degrade import blur
from .mixture import Group
from .recipe import Recipe
from .scenes import Scenes, scene_groups
from .spectrum import CONTRAST_MIN, comb, lines, luma, standing_out, weaves
from .straight import gradients
from .train import SCENES, Plan, Run, adam, go_on, options, prepare, summed, team

# Contrast below GRAIN, four levels, is not asked for: a network that draws the same for the same source can only draw a
# weave for it, and did. More than the original's is too much from SPECK on, one level: flat places stay flat.
GRAIN, SPECK = 0.016, 0.004
# Side of the windows in which a grid shows, in input pixels.
GRID_WINDOW = 16
# Side of the windows that contrast is measured in, in output pixels.
WINDOW = 8
# By scale, the sides of the means between which the bands of fine detail lie. Contrast within three pixels is not asked
# for by itself at 4x: no source says where it is, and dots and noise were drawn for it.
BANDS = {2: (3, 5, 9), 4: (5, 9)}
# In output pixels: standard deviation and reach of the unsharp mask, side of the windows in which edges have to run one
# way.
MASK_SIGMA, MASK_REACH, RUN = 1.5, 4, 17
# Rate of the critic's Adam, and how many steps it is ahead: an ignorant one asks for anything.
CRITIC_RATE, CRITIC_ALONE = 4e-4, 100


class Photos(Group):
    """A group in which no page is."""


class CrispRun(Run):
    """Asks photographs for contrast as the original has it, for no grid, and what a critic wants where the recipe has
    one; the other groups as ever."""

    critic_rate = CRITIC_RATE

    def __init__(self, recipe: Recipe, device: str, compiled: bool = False) -> None:
        super().__init__(recipe, device, compiled)
        self.critic = self.new_critic().to(device) if recipe.critic else None
        if self.critic:
            self.judging = adam(self.critic.parameters(), self.critic_rate, betas=(0.5, 0.99))
            for value in self.critic.parameters():
                value.grad = torch.zeros_like(value)
        # Before a checkpoint is taken, `network` is what the training began with.
        self.start = copy.deepcopy(self.network).requires_grad_(False) if recipe.weave else None

    def new_critic(self) -> nn.Module:
        return Critic()

    @property
    def recordable(self) -> bool:
        """Not before the critic is heard: until then a step does something else."""
        return not self.critic or self.step >= CRITIC_ALONE

    def stepped(self, pictures: Pictures) -> Tensor:
        """The critic takes its step on the same pictures."""
        if not self.critic:
            return super().stepped(pictures)
        # Zeros, not nothing: of a team, one process may have had no use for the critic.
        self.judging.zero_grad(set_to_none=False)
        loss = super().stepped(pictures)
        summed(self.critic, loss)
        self.judging.step()
        return loss

    def state(self) -> dict:
        extra = {"critic": self.critic.state_dict(), "judging": self.judging.state_dict()} if self.critic else {}
        return super().state() | extra

    def take(self, state: dict) -> None:
        super().take(state)
        if self.critic:
            self.critic.load_state_dict(state["critic"])
            self.judging.load_state_dict(state["judging"])

    def loss(self, output: Tensor, group: Group) -> Tensor:
        if isinstance(group, Photos):
            return self.crisp_loss(output, group)
        return self.recipe.loss(self.step, output, group.clean)

    def crisp_loss(self, output: Tensor, group: Group) -> Tensor:
        recipe, output = self.recipe, output.float()
        if recipe.sharpen:
            group = replace(group, clean=sharpened(group.clean, recipe.sharpen))
        loss = recipe.loss(self.step, output, group.clean)
        if recipe.comb or recipe.lines:
            loss = loss + self.standing_out_costs(output, group.clean)
        if recipe.weave:
            loss = loss + recipe.weave * weaves(output, self.started(group)).mean()
        if recipe.critic:
            loss = loss + recipe.critic * self.judged(output, group)
        return loss + recipe.contrast * lacking(output, group.clean, recipe.scale, recipe.grid)

    def standing_out_costs(self, made: Tensor, clean: Tensor) -> Tensor:
        """The recipe's prices on what stands out in the spectrum of `made` and not in that of `clean`."""
        recipe, spectra = self.recipe, (standing_out(made), standing_out(clean))
        return recipe.comb * comb(*spectra, recipe.scale).mean() + recipe.lines * lines(*spectra).mean()

    @torch.no_grad()
    def started(self, group: Group) -> Tensor:
        """What the network that the training began with makes of the same."""
        self.start.by = self.network.by
        with self.coarsely():
            return self.start(group.small, group.condition).float()

    def judged(self, output: Tensor, group: Group) -> Tensor:
        """What the critic has against `output`, by its judgement and by what its layers see; leaves it the gradients
        of its own loss. For the first CRITIC_ALONE steps it learns and is not heard."""
        scale, draw = self.recipe.scale, None if output.is_cuda else torch.Generator().manual_seed(self.step)
        base = functional.pixel_shuffle(self.network.phases(group.small), scale)
        made, clean, base = shifted([output, group.clean, base], scale, draw)
        counts = counting(clean)
        with self.coarsely():
            self.critic.requires_grad_(True)
            real, seen = self.critic(clean, base, counts)
            preferred(real.float(), self.critic(made.detach(), base, counts)[0].float()).backward()
            if self.step < CRITIC_ALONE:
                return output.new_zeros(())
            self.critic.requires_grad_(False)
            judgement, seen_made = self.critic(made, base, counts)
        seen = [one.detach().float() for one in seen]
        return preferred(judgement.float(), real.detach().float()) + unlike([one.float() for one in seen_made], seen)


class DetailRun(CrispRun):
    """Half of the scenes are photographs and art, asked to be crisp; the others as the restoring network sees them.

    What the condition changes stays as it was: both networks follow one condition, and mixing their weights mixes
    what they do.
    """

    # Shares of the scenes that are asked to be crisp, and of those that are not.
    shown = SCENES
    others = SCENES

    def __init__(self, recipe: Recipe, device: str, compiled: bool = False) -> None:
        super().__init__(recipe, device, compiled)
        self.network.cond.requires_grad_(False)

    def held(self, pictures: Pictures) -> list[tuple[Pictures, str, int]]:
        half = self.recipe.scenes // 2
        return [(pictures.textured_only(), "photos", half), (pictures, "all", half)]

    def groups(self, pictures: Pictures) -> list[tuple[Group, float]]:
        rank, ranks = team()
        recipe = self.recipe
        if recipe.pool:
            (photos, share), *others = super().groups(pictures)
            return [(Photos(**vars(photos)), share), *others]
        draw, count = np.random.default_rng([recipe.seed, self.step, rank]), recipe.scenes // ranks
        asked = (count + 1) // 2

        photos = self.asked_crisp(pictures, draw, asked, self.shown)
        others = self.cut(self.left_alone(pictures), draw, count - asked, self.others)
        return [(group, 1.0 / recipe.scenes) for group in [*photos, *others]]

    def left_alone(self, pictures: Pictures) -> Pictures:
        """What the scenes that are not asked to be crisp are cut from."""
        return pictures

    def asked_crisp(self, pictures: Pictures, draw: np.random.Generator, count: int, scenes: Scenes) -> list[Group]:
        return [Photos(**vars(group)) for group in self.cut(pictures.textured_only(), draw, count, scenes)]

    def cut(self, pictures: Pictures, draw: np.random.Generator, count: int, scenes: Scenes) -> list[Group]:
        side = self.recipe.patch_side(self.step)
        return scene_groups(pictures, draw, count, self.recipe.crops, side, self.estimator, scenes)


class EvenRun(CrispRun):
    """For recipes without scenes: every second group is of photographs and art, the others as ever."""

    def plan(self) -> Plan:
        return [(photos(draw) if place % 2 else draw, size) for place, (draw, size) in enumerate(super().plan())]


def photos(draw: Callable[..., Group]) -> Callable[..., Group]:
    """Draws the same of photographs and art alone."""

    def drawn(pictures: Pictures, *others: object) -> Photos:
        return Photos(**vars(draw(pictures.textured_only(), *others)))

    return drawn


def sharpened(clean: Tensor, share: float) -> Tensor:
    """RGB [n, 3, h, w] with `share` of an unsharp mask: edges become steeper, in brightness alone. Grain stays, and
    texture.

    Real-ESRGAN is trained on sharpened originals as well (Wang et al. 2021, section 3.4), texture too.
    """
    plane = luma(clean)
    edge = plane - blur(plane, clean.new_full((len(clean),), MASK_SIGMA), MASK_REACH)
    edge = edge * edge.square() / (edge.square() + GRAIN**2)
    return (clean + share * one_way(plane) * edge).clamp(0.0, 1.0)


def one_way(plane: Tensor) -> Tensor:
    """How much the edges of [n, 1, h, w] run one way: 1 for a straight edge, 0 where they run every way, as leaves do.

    The square of the coherence of the structure tensor (Bigun and Granlund 1987).
    """
    across, down = gradients(plane)
    products = torch.cat([across.square(), down.square(), across * down], dim=1)
    # One axis, then the other: the same mean in a fourth of the time.
    for window in ((RUN, 1), (1, RUN)):
        around = tuple(side // 2 for side in window)
        products = functional.avg_pool2d(products, window, 1, around, count_include_pad=False)
    xx, yy, xy = products.split(1, dim=1)
    return ((xx - yy).square() + 4.0 * xy.square()) / (xx + yy + SPECK**2 / 4.0).square()


def lacking(output: Tensor, clean: Tensor, scale: int, share: float) -> Tensor:
    """What is wrong with the contrast of RGB [n, 3, h, w], in factors of e: too little of it, or a grid for it.

    `share` is what a grid as strong as CONTRAST_MIN costs. At 10 it outweighs the contrast some twenty times and acts
    as more square error; at 0.25 no grid was seen either.
    """
    return too_smooth(output, clean, scale) + share * grid(output - clean, scale)


def grid(error: Tensor, scale: int) -> Tensor:
    """Power of what `error` repeats with every input pixel, in units of CONTRAST_MIN: 0 where nothing does.

    Each of the scale² places within an input pixel has its mean over a window; where there is no grid they are equal.
    """
    places = functional.pixel_unshuffle(luma(error), scale)
    means = functional.avg_pool2d(places, min(GRID_WINDOW, *places.shape[2:]), GRID_WINDOW // 2)
    return (means - means.mean(dim=1, keepdim=True)).square().mean() / CONTRAST_MIN**2


def too_smooth(output: Tensor, clean: Tensor, scale: int) -> Tensor:
    """Mean distance of the logarithms of local contrast, over all bands and windows; 0 where all are equal.

    And how much more grain than the original's there is, where it has little.
    """
    found = []
    for one, other in zip(contrasts(output, scale), contrasts(clean, scale), strict=True):
        unlike = (logarithm(one, GRAIN) - logarithm(other, GRAIN)).abs()
        too_much = (logarithm(one, SPECK) - logarithm(other, SPECK)).clamp(min=0.0)
        found.append((unlike + too_much).mean())
    return torch.stack(found).mean()


def logarithm(power: Tensor, least: float) -> Tensor:
    """Of the deviation with that power; `least` is as good as none."""
    return (power + least**2).log() * 0.5


def contrasts(picture: Tensor, scale: int) -> list[Tensor]:
    """Of RGB [n, 3, h, w]: the power of each band of fine detail in every window, overlapping by half."""
    plane, found = luma(picture), []
    for side in BANDS[scale]:
        smooth = functional.avg_pool2d(plane, side, 1, side // 2, count_include_pad=False)
        found.append(functional.avg_pool2d((plane - smooth).square(), WINDOW, WINDOW // 2))
        plane = smooth
    return found


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with ATTRIBUTION.tsv and its pictures")
    arguments = parser.parse_args()
    recipe = prepare(arguments)
    held = arguments.resident or arguments.device.startswith("cuda")
    pictures = Pictures(arguments.data, arguments.runs / "cache", recipe.scale, recipe.pages, arguments.device, held)
    kind = DetailRun if recipe.scenes else EvenRun
    go_on(kind(recipe, arguments.device, arguments.compile), pictures, arguments)


if __name__ == "__main__":
    main()
