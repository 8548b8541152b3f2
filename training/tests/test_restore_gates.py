from itertools import pairwise

import numpy as np
import pytest

from conftest import drawn_picture
from upscale_training.estimate import Estimator
from upscale_training.network import Architecture, Network
from upscale_training.restore_bed import Row, softened
from upscale_training.restore_gates import COLUMNS, fine, gates, measure, report


class Silent(Estimator):
    """Says the same of every picture."""

    def __init__(self) -> None:
        super().__init__(58)
        for layer in self.layers:
            layer.weight.data.zero_()
            layer.bias.data.zero_()


ROWS = [Row("clean"), Row("noise 20", noise=20.0), Row("blur 1.2", softness=1.2)]


@pytest.mark.parametrize("scale", [2, 4])
def test_a_network_that_does_nothing_is_bicubic_in_every_column_and_misses_what_is_asked(scale):
    network = Network(Architecture(scale, 8, 1, conditioned=True, inputs=6))
    before = Network(Architecture(scale, 8, 1, conditioned=True))
    found = measure({"Set5": [drawn_picture(3, 128, 128)]}, None, ROWS, network, before, Silent())
    for marks in found.values():
        assert set(marks) == {"bicubic", *COLUMNS}
        for name in COLUMNS:
            # Both round to 8 bits, one from single, one from double precision.
            assert marks[name] == pytest.approx(marks["bicubic"], abs=0.02)
    demands = {demand.name: demand.passed for demand in gates(found, scale)}
    assert demands["Set5, clean: over the network before"] and not demands["Set5, noise 20: over bicubic"]
    assert "**no**" in report(found, "nothing", scale)


def test_fine_detail_falls_with_every_blur():
    plane = drawn_picture(4, 96, 96)[..., 0].astype(np.float64)
    levels = [fine(softened(plane[..., None], sigma)[..., 0]) for sigma in (0.0, 0.5, 1.0, 2.0)]
    assert all(one > other for one, other in pairwise(levels))
