"""What a step costs by winograd.py beside PyTorch's own layers, one thread: `python -m upscale_training.step_cost`."""

from __future__ import annotations

import argparse
import time

import torch

from .network import Network, Plain, tier
from .winograd import Winograd


def seconds(network: Network, small: torch.Tensor, by: type[Plain], steps: int) -> float:
    """Processor seconds of one forward and backward, the mean of `steps`."""
    network.by, started = by, time.process_time()
    for _ in range(steps):
        network.zero_grad()
        network(small).square().mean().backward()
    return (time.process_time() - started) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tier", choices=["f", "s", "x"], default="s")
    parser.add_argument("--scale", type=int, choices=[2, 4], default=4)
    parser.add_argument("--patches", type=int, default=6)
    parser.add_argument("--side", type=int, default=40, help="input pixels, a multiple of 4")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    network = Network(tier(arguments.tier, arguments.scale)).to(memory_format=torch.channels_last)
    small = torch.rand(arguments.patches, 3, arguments.side, arguments.side).to(memory_format=torch.channels_last)
    for by in (Plain, Winograd):
        seconds(network, small, by, 3)
    for _ in range(arguments.rounds):
        plain, fast = (seconds(network, small, by, arguments.steps) for by in (Plain, Winograd))
        print(f"PyTorch {plain * 1e3:.0f} ms, Winograd {fast * 1e3:.0f} ms a step: {plain / fast:.2f} x", flush=True)


if __name__ == "__main__":
    main()
