import re

import pytest
import torch
from torch import Tensor

from test_network import stirred
from upscale_training import step_cost
from upscale_training.network import Plain, tier
from upscale_training.winograd import Convolution, Fusion, Winograd, fits


def drawn(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.manual_seed(seed))


def with_gradients(compute, inputs: list[Tensor], upstream: Tensor) -> list[Tensor]:
    """The output and the gradient of every input."""
    inputs = [value.clone().requires_grad_() for value in inputs]
    output = compute(*inputs)
    output.backward(upstream)
    return [output.detach(), *(value.grad for value in inputs)]


def assert_close(fast: list[Tensor], exact: list[Tensor]) -> None:
    for one, other in zip(fast, exact, strict=True):
        # 1e-5 of the largest: F(4x4)'s constants of up to 8 cost one to two digits of single precision's seven.
        assert (one.double() - other).abs().max() <= 1e-5 * other.abs().max()


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("channels", [32, 48, 64])
# Fewer tiles than a block of 24, several blocks with a rest, one tile, a side of one tile.
@pytest.mark.parametrize("size", [(2, 8, 12), (3, 20, 16), (1, 4, 4), (1, 4, 40)])
def test_a_convolution_and_its_gradients_are_those_of_the_definition(size, channels, relu):
    n, height, width = size
    values = [
        drawn(n, channels, height, width, seed=1),
        drawn(channels, channels, 3, 3, seed=2),
        drawn(channels, seed=3),
    ]
    upstream = drawn(n, channels, height, width, seed=4)
    assert fits(values[0])
    fast = with_gradients(lambda *all: Winograd.convolve(*all, relu), values, upstream)
    doubles = [value.double() for value in values]
    assert_close(fast, with_gradients(lambda *all: Plain.convolve(*all, relu), doubles, upstream.double()))


@pytest.mark.parametrize("channels", [32, 48, 64])
@pytest.mark.parametrize("side", [4, 12])
def test_fused_taps_and_their_gradients_are_those_of_the_definition(channels, side):
    taps = [drawn(2, channels, side, side, seed=seed) for seed in range(4)]
    values = [drawn(channels, 4 * channels, 1, 1, seed=5), drawn(channels, seed=6), *taps]
    upstream = drawn(2, channels, side, side, seed=7)

    def by(arithmetic):
        return lambda weight, bias, *taps: arithmetic.fuse(list(taps), weight, bias)

    fast = with_gradients(by(Winograd), values, upstream)
    assert_close(fast, with_gradients(by(Plain), [value.double() for value in values], upstream.double()))


def gradients(network, small: Tensor) -> list[Tensor]:
    network.zero_grad()
    output = network(small)
    output.square().mean().backward()
    return [output.detach(), *(value.grad for value in network.parameters())]


@pytest.mark.parametrize("scale", [2, 4])
def test_a_whole_network_steps_the_same_way(scale, monkeypatch):
    calls = []
    for kind in (Convolution, Fusion):
        monkeypatch.setattr(kind, "apply", lambda *all, kind=kind, apply=kind.apply: calls.append(kind) or apply(*all))
    network, small = stirred(tier("s", scale)), torch.rand(2, 3, 16, 20, generator=torch.manual_seed(8))
    exact = gradients(network.double(), small.double())
    network.float().by = Winograd
    assert_close(gradients(network, small), exact)
    # 18 layers of blocks, the tail and, at 4x, the last one, which has 48 outputs too.
    assert calls.count(Convolution) == {2: 19, 4: 20}[scale] and calls.count(Fusion) == 1


@pytest.mark.parametrize(
    "small",
    [torch.rand(1, 3, 16, 18), torch.rand(1, 3, 13, 16), torch.rand(1, 3, 16, 16, dtype=torch.float64)],
    ids=["odd width", "odd height", "double"],
)
def test_what_does_not_fit_is_left_to_the_definition(small):
    network = stirred(tier("f", 2)).to(small.dtype)
    expected = network(small)
    network.by = Winograd
    assert torch.equal(network(small), expected)


def test_what_a_step_costs_is_printed_round_by_round(monkeypatch, capsys):
    small = ["--tier=f", "--scale=2", "--patches=1", "--side=8", "--steps=1", "--rounds=2"]
    monkeypatch.setattr("sys.argv", ["step_cost", *small])
    step_cost.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert re.fullmatch(r"PyTorch \d+ ms, Winograd \d+ ms a step: \d+\.\d\d x", line)
