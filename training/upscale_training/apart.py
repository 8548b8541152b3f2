"""Keeps what crisp layers do to photographs and takes back what they do to pages: `python -m upscale_training.apart
CONFIG --data FOLDER`.

Two finished networks are the teachers: on photographs and art the one that the recipe starts from, on all else the
restoring network that ships. No critic and no contrast: a teacher's answer is the same each time, so the rates may be
those of a young network. A grid in what is added to the restoring network's answer costs, whatever a teacher draws.
Where the original is flat the restoring network is the teacher of photographs as well, and grain costs: a crisp one
draws it there. look_gates.py says whether what comes of it may ship.
With `steady` in the recipe the first teacher answers twice, the second time for pictures of that much noise: lines are
straight then and flat places clean, but grass, bark and cloth are smooth. What is taught is the second answer where the
original has lines or nothing, the first where it has texture. A network can tell them apart by the source.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from .condition import source_inputs
from .detail import DetailRun, Photos, grid
from .flat import REACH, calm, fine_power, smooth, speckle_cost
from .mixture import Group
from .network import Network
from .recipe import Recipe
from .restore_gates import load
from .scenes import Scenes
from .spectrum import comb, standing_out
from .train import train_on_scenes

WEIGHTS = Path(__file__).parents[2] / "crates/upscale_engine/weights"
# Place of the noise in a condition.
NOISE = 4
# Square errors below these are as good as none: of a level between two networks, of half a level to the original.
ALIKE, EXACT = 1.5e-5, 4e-6
# Contrast from which on a place of the original is texture: a level and a half, in 0..1, of what is fine (flat.fine).
# What stands alone, as an edge does, is none: of a square of REACH source pixels the least counts (of five pixels a
# strong edge is texture). When what runs one way was none either, hair and bark lost what a critic had taught.
TEXTURE = 0.006
# What a page's error costs beside a photograph's: .2 dB of a page weigh as much as .45 of what is crisp. At 2, drawn
# text behind a blur fell .16 dB behind.
PAGES = 3.0
# Of the scenes of pages those that are files, a sixth elsewhere, and of the camera's those that are only soft, .15
# elsewhere: text behind a blur and behind coarse JPEGs is the first to suffer.
FILES, SOFT = 0.4, 0.4
# What fine contrast of a level costs where a photograph is flat, beyond the restoring network's: by its square error
# alone grain of half a level counts as nothing beside texture, and noisy walls kept it.
SPECKLE = 0.5
# What a grid in what a photograph's answer adds to the restoring network's costs (detail.grid).
GRID = 1.0


class PagesRun(DetailRun):
    """Half of the scenes are photographs and art; the others, pages among them, are taught by the restoring network."""

    others = Scenes(clean=0.2, file=FILES, only_soft=SOFT)

    def __init__(self, recipe: Recipe, device: str, compiled: bool = False) -> None:
        super().__init__(recipe, device, compiled)
        if recipe.critic or recipe.contrast:
            raise ValueError("teachers ask for neither a critic nor contrast: leave them out of the recipe")
        self.restoring = load(WEIGHTS / f"restore-x{recipe.scale}.safetensors")[0].requires_grad_(False)

    def loss(self, output: Tensor, group: Group) -> Tensor:
        restored = self.taught(self.restoring, group)
        if isinstance(group, Photos):
            return self.asked(output.float(), restored, group)
        error = squares(restored - group.clean) + EXACT
        further = (squares(output - restored) / error).mean()
        return PAGES * 0.5 * (further + ((squares(output - group.clean) + EXACT) / error).log().mean())

    def asked(self, output: Tensor, restored: Tensor, group: Photos) -> Tensor:
        """What is wrong with photographs."""
        raise NotImplementedError

    def drawn(self, output: Tensor, restored: Tensor, clean: Tensor, still: Tensor) -> Tensor:
        """What grids and grain cost that `output` draws beyond the restoring network's answer."""
        recipe, added = self.recipe, output - restored
        spectra = standing_out(output), standing_out(clean)
        combs = recipe.comb * comb(*spectra, recipe.scale).mean()
        return combs + GRID * grid(added, recipe.scale) + SPECKLE * speckle_cost(added, still)

    @torch.no_grad()
    def taught(self, teacher: Network, group: Group) -> Tensor:
        teacher.by = self.network.by
        return teacher(group.small, group.condition).float()


class ApartRun(PagesRun):
    """Photographs and art are taught by the network that the training starts from."""

    def __init__(self, recipe: Recipe, device: str, compiled: bool = False) -> None:
        super().__init__(recipe, device, compiled)
        self.crisp_teacher = copy.deepcopy(self.network).requires_grad_(False)

    def asked(self, output: Tensor, restored: Tensor, group: Photos) -> Tensor:
        still = calm(group.clean, self.recipe.scale)
        crisp = torch.lerp(self.crisp(group), restored, still)
        unlike = (squares(output - crisp) / (squares(crisp - restored) + ALIKE)).mean()
        return unlike + self.drawn(output, restored, group.clean, still)

    def crisp(self, group: Group) -> Tensor:
        """What photographs are taught: the first teacher's answer, with `steady` its two answers by what is there."""
        read = self.taught(self.crisp_teacher, group)
        if not self.recipe.steady:
            return read
        condition = group.condition.clone()
        condition[..., NOISE] = condition[..., NOISE].clamp(min=source_inputs(self.recipe.steady, 0.0)[0])
        steady = self.taught(self.crisp_teacher, replace(group, condition=condition))
        return torch.lerp(steady, read, textured(group.clean, self.recipe.scale))


def textured(clean: Tensor, scale: int) -> Tensor:
    """How much each place of RGB [n, 3, h, w] in 0..1 is texture and not a lone edge, a lone line or nothing:
    [n, 1, h, w]."""
    least = -functional.max_pool2d(-fine_power(clean, scale), REACH, 1, REACH // 2)
    return smooth(1.0 - (-least / TEXTURE**2).exp(), scale)


def squares(error: Tensor) -> Tensor:
    """[n]: mean square of each of [n, 3, h, w]."""
    return error.float().square().mean(dim=(1, 2, 3))


if __name__ == "__main__":
    train_on_scenes(ApartRun, __doc__)
