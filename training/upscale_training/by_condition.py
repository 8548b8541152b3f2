"""Makes a finished face network draw more where a source is noisy or soft: `python -m upscale_training.by_condition
CONFIG --faces FOLDER`.

Only what the condition changes is trained. Scenes that read noisy or soft are asked for contrast and shown to the
critic, as faces.py does; on all others the network is held to what it did before. So a source that shows less gets
more, and gates of other sources stay. `start_from` in the recipe is the network that is to change.
"""

from __future__ import annotations

from torch import Tensor

from .camera import Camera
from .condition import jpeg_condition, source_inputs
from .faces import FaceRun, train_on_faces
from .mixture import Group, Mixture
from .recipe import Recipe
from .scenes import Scenes
from .train import adam

# A source counts from so many levels of noise or pixels of softness on. Faces behind noise of five levels keep to what
# they are; those behind twelve, and a blur of one pixel, are to be seen.
NOISY, SOFT = 8.0, 0.75
# JPEGs below this quality are held too: behind quality 30 faces change enough, and identity has no more to give.
COMPRESSED = jpeg_condition(75, 0.0)[1]
# What a difference from before costs elsewhere, for a square error of 1: twice what the logarithm in `Recipe.loss`
# makes of it beside an error of 4e-4.
HELD = 400.0
# Most scenes as cameras make them, few of them compressed or of unknown noise.
SCENES = Scenes(
    clean=0.08,
    file=0.2,
    only_soft=0.15,
    compressed=0.15,
    silent=0.05,
    half_silent=0.03,
    sides=(48,),
    mixture=Mixture(mild=0.3, strong=0.2),
    camera=Camera(quiet=0.1, sharp=0.5, very_soft=0.05, plain_grain=0.9),
)


class ByConditionRun(FaceRun):
    """Trains the condition's layers alone. One condition a group: on a CPU, not in one batch."""

    scenes = SCENES

    def __init__(self, recipe: Recipe, device: str, compiled: bool = False) -> None:
        super().__init__(recipe, device, compiled)
        if not self.start or self.by_sample or recipe.pool:
            raise ValueError("a recipe needs `weave`, no `pool`, and steps that are not compiled")
        for name, value in self.network.named_parameters():
            value.requires_grad_(name.startswith("cond."))
        self.optimisers = [adam(self.network.cond.parameters(), recipe.rate_peak)]

    def crisp_loss(self, output: Tensor, group: Group) -> Tensor:
        if shows_little(group.condition):
            return super().crisp_loss(output, group)
        return HELD * (output.float() - self.started(group)).square().mean()


def shows_little(condition: Tensor) -> bool:
    """Whether a source is noisy or soft by its condition [6], and its file not coarse."""
    (noise, _), (_, softness) = source_inputs(NOISY, None), source_inputs(None, SOFT)
    return bool((condition[1] <= COMPRESSED) & ((condition[4] >= noise) | (condition[5] >= softness)))


if __name__ == "__main__":
    train_on_faces(__doc__, lambda recipe: ByConditionRun)
