"""Trains crisper detail against a critic that sees every place within a source pixel by itself:
`python -m upscale_training.adversarial CONFIG --data FOLDER`.

The critic of critic.py pools what its first layer sees, and with that goes where within a source pixel a thing lies:
the networks that were trained against it drew the same dots in every source pixel, and it was deceived. This one takes
those places as channels and pools nothing. After 80 pictures of grain and grids of the same strength its loss is .01,
the other's .50 (test_adversarial.py). It sees brightness alone: where it saw colours too, edges got fringes of blue and
red. Judgement and error meet at the output, by the norms of their gradients: a weight in the loss would mean another
balance whenever the critic changes. All scenes are photographs and art: what comes of it spoils pages, which apart.py
takes back.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

from .critic import SLOPE, preferred, shifted, unlike
from .data import Pictures
from .detail import DetailRun, grid, sharpened
from .flat import calm, speckle_cost
from .mixture import Group
from .recipe import Recipe
from .scenes import Scenes
from .spectrum import luma
from .train import summed, team, train_on_scenes

WIDTH, LAYERS = 96, 3
# Of the norm of the error's gradient at the output: that of the judgement, and that of what the critic's layers see.
JUDGED, SEEN = 2.6, 2.0
# Rate of the critic's Adam: a pooling one at 3e-4, unpaired, could not tell a grid from a photograph after 400 steps.
CRITIC_RATE = 1e-3
# Steps that a new critic learns alone, and one from a file, whose Adam begins anew. 678 steps beside the network left
# it with a loss of .41 (.69: it knows nothing), 1,186 more alone with .23.
CRITIC_ALONE, CRITIC_AGAIN = 1200, 50
# What a pixel's own error, its colour's and that of a source pixel's mean count.
PIXEL, COLOUR, MEAN = 0.5, 0.5, 1.0
# What fine contrast of a level costs where the original is flat: there a critic asks for grain.
SPECKLE = 0.05


class PlacesCritic(nn.Module):
    """Brightness [n, 1, h, w] in 0..1 beside its bicubic base, sides multiples of `scale`, to one judgement for every
    source pixel, the higher the more like a photograph. The middle layers are under a spectral norm of 1."""

    def __init__(self, scale: int) -> None:
        super().__init__()
        self.scale = scale
        self.first = nn.Conv2d(2 * scale**2, WIDTH, 3, padding=1)
        self.layers = nn.ModuleList(spectral_norm(nn.Conv2d(WIDTH, WIDTH, 3, padding=1)) for _ in range(LAYERS))
        self.last = nn.Conv2d(WIDTH, 1, 3, padding=1)

    def forward(self, picture: Tensor, base: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The judgements, and what each layer saw."""
        both = torch.cat([(picture - base) * 8.0, picture * 4.0 - 2.0], dim=1)
        x = functional.pixel_unshuffle(both, self.scale).contiguous(memory_format=torch.channels_last)
        seen = []
        for layer in (self.first, *self.layers):
            x = functional.leaky_relu(layer(x), SLOPE)
            seen.append(x)
        return self.last(x), seen


@dataclass(frozen=True)
class Judgement:
    """What the critic has against a result, by its judgement and by what its layers see."""

    worse: Tensor
    unlike: Tensor


class AdversarialRun(DetailRun):
    """The recipe's `critic` says that there is one; how much it counts is JUDGED and SEEN."""

    recordable = False
    critic_rate = CRITIC_RATE
    scenes_of_photos = Scenes(clean=0.15, file=0.3)

    def __init__(self, recipe: Recipe, device: str, compiled: bool = False) -> None:
        super().__init__(recipe, device, compiled)
        if not recipe.critic or recipe.contrast or recipe.pool:
            raise ValueError("two networks contend: the recipe needs a critic, and neither contrast nor a pool")
        if recipe.critic_from:
            take_critic(self.critic, Path(recipe.critic_from))

    def new_critic(self) -> nn.Module:
        return PlacesCritic(self.recipe.scale)

    @property
    def alone(self) -> int:
        """Steps that the critic learns before the network does."""
        return CRITIC_AGAIN if self.recipe.critic_from else CRITIC_ALONE

    def stepped(self, pictures: Pictures) -> Tensor:
        return super().stepped(pictures) if self.step >= self.alone else self.lesson(pictures)

    def lesson(self, pictures: Pictures) -> Tensor:
        """A step of the critic on what the network makes, which stays as it is; returns the critic's loss."""
        self.judging.zero_grad(set_to_none=False)
        losses = []
        for group, share in self.groups(pictures):
            with torch.no_grad(), self.coarsely():
                made = self.network(group.small, group.condition).float()
            clean = sharpened(group.clean, self.recipe.sharpen)
            losses.append(share * self.learn(*self.windows(made, clean, group))[0])
        loss = summed(self.critic, torch.stack(losses).sum())
        self.judging.step()
        return loss

    def groups(self, pictures: Pictures) -> list[tuple[Group, float]]:
        rank, ranks = team()
        scenes, draw = self.recipe.scenes, np.random.default_rng([self.recipe.seed, self.step, rank])
        found = self.asked_crisp(pictures, draw, scenes // ranks, self.scenes_of_photos)
        return [(group, 1.0 / scenes) for group in found]

    def crisp_loss(self, output: Tensor, group: Group) -> Tensor:
        """The error; its gradient is that of error, prices and judgement together."""
        made = output.detach().float().requires_grad_(True)
        clean = sharpened(group.clean, self.recipe.sharpen)
        error, judgement = self.error(made, clean), self.judgement(*self.windows(made, clean, group))
        wanted = balanced(error, judgement, made) + slope(self.prices(made, clean), made)
        along = (output.float() * wanted).sum()
        return along - along.detach() + error.detach()

    def error(self, made: Tensor, clean: Tensor) -> Tensor:
        """Absolute errors of pixels, of their colours and of source pixels' means."""
        off = made - clean
        error = PIXEL * off.abs().mean() + COLOUR * (off - luma(off)).abs().mean()
        return error + MEAN * functional.avg_pool2d(off, self.recipe.scale).abs().mean()

    def prices(self, made: Tensor, clean: Tensor) -> Tensor:
        """The recipe's, of grids and lines, and that of speckle."""
        recipe, off = self.recipe, made - clean
        drawn = recipe.grid * grid(off, recipe.scale) + SPECKLE * speckle_cost(off, calm(clean, recipe.scale))
        return self.standing_out_costs(made, clean) + drawn

    def windows(self, made: Tensor, clean: Tensor, group: Group) -> list[Tensor]:
        """What the critic sees of result, original and bicubic base: the brightness of one window of each."""
        base = functional.pixel_shuffle(self.network.phases(group.small), self.recipe.scale)
        draw = torch.Generator().manual_seed(self.step)
        return [luma(one) for one in shifted([made, clean, base], self.recipe.scale, draw)]

    def learn(self, made: Tensor, clean: Tensor, base: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Leaves the critic the gradients of its own loss: that the original be judged above the result, at the same
        place (Jolicoeur-Martineau 2019). Returns that loss, and what the critic makes of the original."""
        self.critic.requires_grad_(True)
        with self.coarsely():
            (real, seen), (judged, _) = self.critic(clean, base), self.critic(made.detach(), base)
        loss = preferred(real.float(), judged.float())
        loss.backward()
        return loss.detach(), real.detach().float(), [one.detach().float() for one in seen]

    def judgement(self, made: Tensor, clean: Tensor, base: Tensor) -> Judgement:
        _, real, seen = self.learn(made, clean, base)
        self.critic.requires_grad_(False)
        with self.coarsely():
            judged, seen_made = self.critic(made, base)
        return Judgement(preferred(judged.float(), real), unlike([one.float() for one in seen_made], seen))


def balanced(error: Tensor, judgement: Judgement, made: Tensor) -> Tensor:
    """What the network is to change `made` by for `error` and `judgement` together: gradients [n, 3, h, w]."""
    wanted = slope(error, made)
    norm = wanted.norm()
    for part, share in ((judgement.worse, JUDGED), (judgement.unlike, SEEN)):
        asked = slope(part, made)
        wanted = wanted + share * norm * asked / asked.norm().clamp(min=1e-12)
    return wanted


def slope(value: Tensor, made: Tensor) -> Tensor:
    """The gradient of `value` at `made`; more of the same graph may be asked for after."""
    return torch.autograd.grad(value, made, retain_graph=True)[0]


def keep_critic(state: dict, path: Path) -> None:
    """Writes the critic of a checkpoint in half precision, for `critic_from` of a recipe."""
    save_file({name: value.half().contiguous() for name, value in state["critic"].items()}, path)


def take_critic(critic: nn.Module, path: Path) -> None:
    """Reads what `keep_critic` wrote; a critic of another shape is refused."""
    critic.load_state_dict({name: value.float() for name, value in load_file(path).items()})


if __name__ == "__main__":
    train_on_scenes(AdversarialRun, __doc__)
