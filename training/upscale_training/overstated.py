"""Crisp layers taught to be as bold as their teacher is when it is told too much: `python -m
upscale_training.overstated CONFIG --data FOLDER`.

A network told that a picture is softer and noisier than it reads draws harder edges. Photographs can bear it and pages
cannot, and no number tells one from the other; what is in the picture does. So the network that the training starts
from answers photographs and art under an overstated condition, the restoring network answers pages under the read one,
and the student, told what was read, learns both answers. No photograph is among the pages: where two in five were,
taught to be left alone, photographs lost their edges.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from .apart import NOISE, ApartRun
from .condition import CAMERA_NOISE, NONE, SOFT, source_inputs, told_in
from .data import Pictures
from .mixture import Group
from .painted import PaintedRun
from .train import train_on_scenes

# What JPEGs are called at least, levels of noise and pixels of softness: files from the web read neither noisy nor soft
# and are both.
JPEGS_NOISE, JPEGS_SOFTNESS = 4.0, 0.6
# How many pixels softer other pictures are called, from SOFT[1] to SOFT[2], and the share of it from SOFT[3] on: at .4
# for all of them DRealSR's pairs, the softest, lost .023 of their SSIM, at .35 and .4 of it .008.
SOFTER, SOFTEST = 0.35, 0.4


class OverstatedRun(ApartRun):
    """Photographs and art are taught by the network that the training starts from, told more than was read."""

    shown = PaintedRun.shown

    def groups(self, pictures: Pictures) -> list[tuple[Group, float]]:
        found, scale = super().groups(pictures), self.recipe.scale
        return [(replace(group, condition=as_served(group.condition, scale)), share) for group, share in found]

    def left_alone(self, pictures: Pictures) -> Pictures:
        return pictures.untextured_only()

    def crisp(self, group: Group) -> Tensor:
        return self.taught(self.crisp_teacher, replace(group, condition=overstated(group.condition)))


def as_served(read: Tensor, scale: int) -> Tensor:
    """What the service tells its networks of a picture that reads like `read`, [6]."""
    return read.new_tensor(told_in("faithful", tuple(read.tolist()), scale))


def overstated(told: Tensor) -> Tensor:
    """A condition [6] with more noise and softness, where little noise is heard."""
    condition, (noise, softness) = told.clone(), told[NOISE:].tolist()
    least = source_inputs(JPEGS_NOISE, JPEGS_SOFTNESS)
    if told[1] > 0.0:
        condition[NOISE:] = told.new_tensor([max(noise, least[0]), max(softness, least[1])])
    elif noise <= source_inputs(CAMERA_NOISE, 0.0)[0]:
        nothing, whole, falling, end = (source_inputs(0.0, pixels)[1] for pixels in SOFT)
        rising = min(1.0, max(0.0, (softness - nothing) / (whole - nothing)))
        share = rising * min(1.0, max(SOFTEST, (end - softness) / (end - falling)))
        condition[NOISE + 1] += share * (source_inputs(0.0, SOFTER)[1] - NONE)
    return condition


if __name__ == "__main__":
    train_on_scenes(OverstatedRun, __doc__)
