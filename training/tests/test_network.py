from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from upscale_training.network import Architecture, Network, in_bytes, tier
from upscale_training.resize import resize

LIFTED = Architecture(2, 16, 2, "lifted", "silu")
SHAPES = [tier("f", 2), tier("f", 4), tier("f", 2, "span"), LIFTED, Architecture(4, 8, 1)]


def stirred(architecture: Architecture) -> Network:
    """A network whose last convolution is not zero."""
    torch.manual_seed(7)
    network = Network(architecture)
    torch.nn.init.normal_(network.up.weight, std=0.02)
    torch.nn.init.normal_(network.up.bias, std=0.02)
    return network


@pytest.mark.parametrize("scale", [2, 4])
def test_an_untrained_network_is_bicubic(scale):
    small = torch.rand(1, 3, 20, 24, generator=torch.manual_seed(1))
    expected = resize(small[0].permute(1, 2, 0).numpy(), 20 * scale, 24 * scale)
    found = Network(tier("f", scale))(small)[0].permute(1, 2, 0).detach().numpy()
    # The two outermost pixels see the edge, which MATLAB mirrors and the engine replicates.
    inside = slice(2 * scale, -2 * scale)
    assert abs(found[inside, inside] - expected[inside, inside]).max() < 1e-5


@pytest.mark.parametrize("shape", SHAPES)
def test_the_layers_are_those_of_the_design(shape):
    network, small = stirred(shape), torch.rand(2, 3, 16, 12)
    weight = network.state_dict()

    def conv(name, value):
        kernel = weight[f"{name}.weight"]
        return functional.conv2d(value, kernel, weight[f"{name}.bias"], padding=kernel.shape[-1] // 2)

    activation = {"relu": torch.relu, "silu": lambda value: value * torch.sigmoid(value)}[shape.activation]
    f0 = h = conv("head", small * shape.input_scale)
    outputs = []
    for index in range(shape.blocks):
        o1 = activation(conv(f"blocks.{index}.conv1", h))
        o3 = conv(f"blocks.{index}.conv3", activation(conv(f"blocks.{index}.conv2", o1)))
        lift = {"span": -0.5, "lifted": 0.5}.get(shape.arch)
        h = o3 + h if lift is None else (o3 + h) * (torch.sigmoid(o3) + lift)
        outputs.append(h)
    residual = conv("up", conv("fuse", torch.cat([f0, conv("tail", h), outputs[0], o1], 1))) / shape.input_scale
    base = Network(shape)(small)
    expected = base + functional.pixel_shuffle(residual, shape.scale)
    torch.testing.assert_close(network(small), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name, parameters", [("f", 128_716), ("s", 410_700), ("x", 1_169_932)])
def test_the_tiers_have_the_sizes_of_the_design(name, parameters):
    assert sum(value.numel() for value in Network(tier(name, 2)).parameters()) == parameters


def test_a_condition_is_folded_into_the_weights():
    network, small = stirred(replace(tier("f", 2), conditioned=True)), torch.rand(1, 3, 9, 8)
    torch.nn.init.normal_(network.cond[2].weight, std=0.1)
    inputs = torch.tensor([1.0, 0.6, 0.7, 1.0])
    outputs = network.cond(inputs).detach().view(-1, 2, 32)
    plain = Network(tier("f", 2))
    plain.load_state_dict({key: value for key, value in network.state_dict().items() if not key.startswith("cond.")})
    with torch.no_grad():
        convs = [conv for block in plain.blocks for conv in (block.conv1, block.conv2, block.conv3)]
        for conv, (scale, offset) in zip(convs, outputs, strict=True):
            conv.weight *= 1.0 + scale[:, None, None, None]
            conv.bias.mul_(1.0 + scale).add_(offset)
    torch.testing.assert_close(network(small, inputs), plain(small), atol=1e-5, rtol=1e-5)
    assert (network(small, inputs) - network(small)).abs().max() > 1e-3


def test_before_training_a_condition_changes_nothing():
    network, small = stirred(replace(tier("f", 2), conditioned=True)), torch.rand(1, 3, 9, 8)
    assert torch.equal(network(small, torch.tensor([1.0, 0.6, 0.7, 1.0])), network(small))


def test_what_ships_stays_in_range():
    network = stirred(tier("f", 2))
    torch.nn.init.normal_(network.up.weight, std=5.0)
    output = network.upscale(torch.rand(1, 3, 8, 8))
    assert output.min() == 0.0 and output.max() == 1.0


@pytest.mark.parametrize("wrong", [{"scale": 3}, {"scale": 2, "arch": "gan"}, {"scale": 2, "channels": 0}])
def test_an_impossible_shape_is_refused(wrong):
    with pytest.raises(ValueError):
        Architecture(**wrong)


def test_what_ships_has_bytes_in_its_inner_convolutions_alone():
    network = stirred(Architecture(2, 8, 2, conditioned=True))
    with torch.no_grad():
        network.blocks[0].conv1.weight[3] = 0.0
    found, before = in_bytes(network).state_dict(), network.state_dict()
    inner = {"tail.weight", *(f"blocks.{block}.conv{conv}.weight" for block in range(2) for conv in (1, 2, 3))}
    assert {name for name, value in before.items() if not torch.equal(found[name], value)} == inner
    for name in inner:
        step = before[name].abs().amax((1, 2, 3), keepdim=True) / 127.0
        change = found[name] - before[name]
        assert (change.abs() <= 1.001 * step).all()
        assert (change.sum((2, 3), keepdim=True).abs() <= 0.501 * step).all()
        whole = found[name] / step.clamp(min=1e-30)
        assert (whole - whole.round()).abs().max() < 1e-4
