"""Keeps what crisp layers do to photographs and takes back what they do to pages: `python -m upscale_training.apart
CONFIG --data FOLDER`.

Two finished networks are the teachers: on photographs and art the one that the recipe starts from, on all else the
restoring network that ships. No critic and no contrast: a teacher's answer is the same each time, so the rates may be
those of a young network. look_gates.py says whether what comes of it may ship.
"""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from torch import Tensor

from .data import Pictures
from .detail import DetailRun, Photos
from .mixture import Group
from .network import Network
from .recipe import Recipe
from .restore_gates import load
from .spectrum import comb, standing_out
from .train import go_on, options, prepare

WEIGHTS = Path(__file__).parents[2] / "crates/upscale_engine/weights"
# Square errors below these are as good as none: of a level between two networks, of half a level to the original.
ALIKE, EXACT = 1.5e-5, 4e-6
# What a page's error costs beside a photograph's: .2 dB of a page weigh as much as .3 of what is crisp.
PAGES = 2.0


class ApartRun(DetailRun):
    """Half of the scenes are photographs and art, taught by the start; the others by the restoring network."""

    def __init__(self, recipe: Recipe, device: str, compiled: bool = False) -> None:
        super().__init__(recipe, device, compiled)
        if recipe.critic or recipe.contrast:
            raise ValueError("two teachers ask for neither a critic nor contrast: leave them out of the recipe")
        self.start = copy.deepcopy(self.network).requires_grad_(False)
        self.restoring = load(WEIGHTS / f"restore-x{recipe.scale}.safetensors")[0].requires_grad_(False)

    def loss(self, output: Tensor, group: Group) -> Tensor:
        restored = self.taught(self.restoring, group)
        if isinstance(group, Photos):
            crisp = self.taught(self.start, group)
            unlike = (squares(output - crisp) / (squares(crisp - restored) + ALIKE)).mean()
            spectra = standing_out(output.float()), standing_out(group.clean)
            return unlike + self.recipe.comb * comb(*spectra, self.recipe.scale).mean()
        error = squares(restored - group.clean) + EXACT
        further = (squares(output - restored) / error).mean()
        return PAGES * 0.5 * (further + ((squares(output - group.clean) + EXACT) / error).log().mean())

    @torch.no_grad()
    def taught(self, teacher: Network, group: Group) -> Tensor:
        teacher.by = self.network.by
        return teacher(group.small, group.condition).float()


def squares(error: Tensor) -> Tensor:
    """[n]: mean square of each of [n, 3, h, w]."""
    return error.float().square().mean(dim=(1, 2, 3))


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with ATTRIBUTION.tsv and its pictures")
    arguments = parser.parse_args()
    recipe = prepare(arguments)
    pictures = Pictures(arguments.data, arguments.runs / "cache", recipe.scale, recipe.pages, arguments.device)
    go_on(ApartRun(recipe, arguments.device), pictures, arguments)


if __name__ == "__main__":
    main()
