from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import avg_pool2d, pixel_shuffle

from test_network import stirred
from upscale_training.grow import grow
from upscale_training.muon import Muon, orthogonal
from upscale_training.network import Architecture, Network

SMALL = Architecture(2, 6, 2)


@pytest.mark.parametrize("conditioned", [False, True])
@pytest.mark.parametrize("larger", [SMALL, replace(SMALL, channels=9), replace(SMALL, blocks=4), Architecture(2, 8, 3)])
def test_a_grown_network_does_what_the_old_one_did(larger, conditioned):
    old, new = stirred(replace(SMALL, conditioned=conditioned)), Network(replace(larger, conditioned=True))
    if conditioned:
        torch.nn.init.normal_(old.cond[2].weight, std=0.2)
        torch.nn.init.normal_(old.cond[2].bias, std=0.2)
    grow(old, new)
    small, inputs = torch.rand(1, 3, 11, 13), torch.tensor([1.0, 0.5, 0.6, 1.0])
    torch.testing.assert_close(new(small, inputs), old(small, inputs), atol=1e-6, rtol=1e-5)


def test_a_network_for_4x_adds_at_2x_the_mean_of_what_it_added():
    old, new = stirred(replace(SMALL, scale=4)), Network(replace(SMALL, channels=8))
    grow(old, new)
    small = torch.rand(1, 3, 11, 13)

    def added(network: Network) -> torch.Tensor:
        return network(small) - pixel_shuffle(network.phases(small), network.architecture.scale)

    assert added(old).abs().max() > 0.01
    torch.testing.assert_close(added(new), avg_pool2d(added(old), 2), atol=1e-6, rtol=1e-5)


def test_every_weight_of_a_grown_network_can_learn():
    old, new = stirred(SMALL), Network(Architecture(2, 9, 3, conditioned=True))
    grow(old, new)
    optimiser = torch.optim.SGD(new.parameters(), 0.1)
    for _ in range(3):
        optimiser.zero_grad()
        new(torch.rand(2, 3, 12, 12), torch.tensor([1.0, 0.4, 0.4, 1.0])).square().mean().backward()
        optimiser.step()
    assert all(value.grad.abs().max() > 0 for value in new.parameters())


def test_a_network_does_not_shrink():
    with pytest.raises(ValueError, match="smaller"):
        grow(Network(SMALL), Network(replace(SMALL, channels=4)))
    with pytest.raises(ValueError, match="smaller"):
        grow(Network(replace(SMALL, conditioned=True)), Network(SMALL))
    with pytest.raises(ValueError, match="cannot do"):
        grow(Network(SMALL), Network(replace(SMALL, scale=4)))


@pytest.mark.parametrize("shape", [(8, 72), (72, 8), (16, 16)])
def test_the_singular_values_come_near_one(shape):
    matrix = torch.randn(shape, generator=torch.manual_seed(2))
    values = np.linalg.svd(orthogonal(matrix).numpy(), compute_uv=False)
    assert values.min() > 0.5 and values.max() < 1.3


def test_muon_goes_downhill_and_remembers():
    torch.manual_seed(5)
    layer, target = torch.nn.Conv2d(3, 8, 3), torch.randn(8, 3, 3, 3) * 0.1
    optimiser = Muon([layer.weight], 0.02)

    def distance() -> torch.Tensor:
        return (layer.weight - target).square().sum()

    before = distance().item()
    for _ in range(60):
        optimiser.zero_grad()
        distance().backward()
        optimiser.step()
    assert distance().item() < 0.2 * before
    assert optimiser.state_dict()["state"]
