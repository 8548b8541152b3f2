"""Muon (Jordan et al. 2024): momentum made orthogonal, so that every direction of a convolution learns at one rate.

Used for the convolutions inside the network; biases, the first and the last layer and the condition take Adam.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

# The quintic of the paper: singular values of 0..1 go to about 0.7..1.2 in five rounds.
A, B, C = 3.4445, -4.7750, 2.0315
ROUNDS = 5
MOMENTUM = 0.95


def orthogonal(matrix: Tensor) -> Tensor:
    """The nearest matrix with singular values near 1, for [rows, columns]."""
    flipped = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if flipped else matrix
    x = x / (x.norm() + 1e-12)
    for _ in range(ROUNDS):
        gram = x @ x.T
        x = A * x + (B * gram + C * gram @ gram) @ x
    return x.T if flipped else x


class Muon(torch.optim.Optimizer):
    """For weights of two or more dimensions, taken as [outputs, everything else]; `lr` as Adam's would be chosen."""

    def __init__(self, parameters: Iterable[Tensor], lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            for weight in group["params"]:
                self.move(weight, group["lr"])

    def move(self, weight: Tensor, rate: float) -> None:
        state = self.state[weight]
        momentum = state.setdefault("momentum", torch.zeros_like(weight))
        momentum.lerp_(weight.grad, 1.0 - MOMENTUM)
        ahead = weight.grad.lerp(momentum, MOMENTUM).reshape(len(weight), -1)
        # The mean square of an orthogonal matrix is 1 / its longer side; 0.2 is what Adam's steps come to (Liu et al.
        # 2025), so that one learning rate serves both.
        step = 0.2 * max(ahead.shape) ** 0.5
        weight.sub_(orthogonal(ahead).view_as(weight), alpha=rate * step)
