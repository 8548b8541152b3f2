"""Makes a finished face network draw more where a source is noisy or soft: `python -m upscale_training.by_condition
CONFIG --faces FOLDER`.

Only what the condition changes is trained. Scenes that read noisy or soft, at 2x also those of coarse JPEGs, are asked
for contrast and shown to the critic, as faces.py does; on all others the network is held to what it did before. So a
source that shows less gets more, and gates of other sources stay. `start_from` in the recipe is the network to change.
"""

from __future__ import annotations

from dataclasses import replace

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
# In JPEGs below this quality noise and softness are not what is seen: they are held.
FINE = jpeg_condition(75, 0.0)[1]
# JPEGs of at most this quality are asked for more at 2x. At 4x faces behind quality 30 change by 3 levels already, and
# the least margin to another person has no more to give.
COARSE = jpeg_condition(40, 0.0)[1]
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
# At 2x coarse JPEGs are one scene in ten.
SCENES_X2 = replace(SCENES, file=0.35, mixture=Mixture(mild=0.1, strong=0.6))


class ByConditionRun(FaceRun):
    """Trains the condition's layers alone. One condition a group: on a CPU, not in one batch."""

    def __init__(self, recipe: Recipe, device: str, compiled: bool = False) -> None:
        self.scenes = SCENES_X2 if recipe.scale == 2 else SCENES
        super().__init__(recipe, device, compiled)
        if not self.start or self.by_sample or recipe.pool:
            raise ValueError("a recipe needs `weave`, no `pool`, and steps that are not compiled")
        for name, value in self.network.named_parameters():
            value.requires_grad_(name.startswith("cond."))
        self.optimisers = [adam(self.network.cond.parameters(), recipe.rate_peak)]

    def crisp_loss(self, output: Tensor, group: Group) -> Tensor:
        if shows_little(group.condition, self.recipe.scale):
            return super().crisp_loss(output, group)
        return HELD * (output.float() - self.started(group)).square().mean()


def shows_little(condition: Tensor, scale: int) -> bool:
    """Whether a source is noisy or soft by its condition [6], or at 2x a coarse JPEG."""
    if condition[1] > FINE:
        return scale == 2 and bool(condition[1] >= COARSE)
    (noise, _), (_, softness) = source_inputs(NOISY, None), source_inputs(None, SOFT)
    return bool((condition[4] >= noise) | (condition[5] >= softness))


if __name__ == "__main__":
    train_on_faces(__doc__, lambda recipe: ByConditionRun)
