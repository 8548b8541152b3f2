"""The network: 3x3 convolutions, four taps, a bicubic base. Training lives in train.py, files in weights.py."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from .condition import CLEAN, FILE_INPUTS, HIDDEN, NONE
from .resize import cubic_phases

# Channels and blocks of each tier; multiplies per input pixel: F 128 K, S 410 K, X 1.17 M at x2.
TIERS = {"f": (32, 4), "s": (48, 6), "x": (64, 10)}
# What a block's gate sigmoid(o3) is moved by; `residual` has no gate. `lifted` lost the comparison of decision 4: the
# engine does not run it.
GATES = {"residual": None, "span": -0.5, "lifted": 0.5}


@dataclass(frozen=True)
class Architecture:
    """Everything that fixes the shapes and the arithmetic of a network.

    `arch` is `residual` (h' = o3 + h), `span` (h' = (o3 + h)(sigmoid(o3) - 0.5)) or `lifted` (+ 0.5 instead);
    `input_scale` multiplies the input (range 0..1) and divides the output's residual.
    A `conditioned` network has a condition of `inputs` numbers, of the file or of file and picture (condition.py).
    """

    scale: int
    channels: int = 32
    blocks: int = 4
    arch: str = "residual"
    activation: str = "relu"
    input_scale: float = 1.0
    conditioned: bool = False
    inputs: int = FILE_INPUTS

    def __post_init__(self) -> None:
        if self.scale not in (2, 4):
            raise ValueError(f"scale is 2 or 4, not {self.scale}")
        if self.arch not in GATES:
            raise ValueError(f"arch is one of {', '.join(GATES)}, not {self.arch!r}")
        if self.activation not in ("relu", "silu"):
            raise ValueError(f"activation is relu or silu, not {self.activation!r}")
        if self.inputs not in HIDDEN:
            raise ValueError(f"a condition has {' or '.join(map(str, HIDDEN))} numbers, not {self.inputs}")
        if self.channels < 1 or self.blocks < 1:
            raise ValueError(f"{self.channels} channels and {self.blocks} blocks: both must be at least 1")


def tier(name: str, scale: int, arch: str = "residual") -> Architecture:
    """Tier `f`, `s` or `x`. The span gate needs SiLU and an input of 0..255: near zero its square dies."""
    channels, blocks = TIERS[name]
    if arch == "span":
        return Architecture(scale, channels, blocks, "span", "silu", 255.0)
    return Architecture(scale, channels, blocks, arch)


def conv3(inputs: int, outputs: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, padding=1)


class Plain:
    """What computes the layers from C channels to C, as PyTorch has it; winograd.py does the same faster on a CPU."""

    @staticmethod
    def convolve(x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
        """3x3, zeros beyond the edges; through ReLU if asked."""
        y = functional.conv2d(x, weight, bias, padding=1)
        return functional.relu(y) if relu else y

    @staticmethod
    def fuse(taps: list[Tensor], weight: Tensor, bias: Tensor) -> Tensor:
        """1x1, of all taps together."""
        return functional.conv2d(torch.cat(taps, dim=1), weight, bias)


class Block(nn.Module):
    """Three 3x3 convolutions. Returns the block's output and its first activation (the fourth tap)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        channels = architecture.channels
        self.conv1 = conv3(channels, channels)
        self.conv2 = conv3(channels, channels)
        self.conv3 = conv3(channels, channels)
        self.gate = GATES[architecture.arch]
        self.activation = functional.relu if architecture.activation == "relu" else functional.silu

    def forward(self, h: Tensor, changes: Tensor | None, by: type[Plain]) -> tuple[Tensor, Tensor]:
        """`changes` [3, 2, C] for the three convolutions, see `folded`."""
        one, two, three = (None, None, None) if changes is None else changes
        o1 = self.active(h, self.conv1, one, by)
        o2 = self.active(o1, self.conv2, two, by)
        o3 = changed(o2, self.conv3, three, by, False)
        if self.gate is None:
            return o3 + h, o1
        return (o3 + h) * (torch.sigmoid(o3) + self.gate), o1

    def active(self, x: Tensor, conv: nn.Conv2d, change: Tensor | None, by: type[Plain]) -> Tensor:
        if self.activation is functional.relu:
            return changed(x, conv, change, by, True)
        return self.activation(changed(x, conv, change, by, False))


def changed(x: Tensor, conv: nn.Conv2d, change: Tensor | None, by: type[Plain], relu: bool) -> Tensor:
    """`conv` under one `change` [2, C] for all of `x`, folded into the weights, or under one [n, 2, C] for each."""
    if change is None or change.dim() == 2:
        return by.convolve(x, *folded(conv, change), relu)
    scale, offset = 1.0 + change[:, 0], change[:, 1]
    plain = by.convolve(x, conv.weight, torch.zeros_like(conv.bias), False)
    y = torch.addcmul(
        (offset + scale * conv.bias)[..., None, None].to(plain.dtype), plain, scale[..., None, None].to(plain.dtype)
    )
    return functional.relu(y) if relu else y


def folded(conv: nn.Conv2d, change: Tensor | None) -> tuple[Tensor, Tensor]:
    """Weights and bias with `change` [2, C] folded in: (1 + d) w and (1 + d) b + t of each channel."""
    if change is None:
        return conv.weight, conv.bias
    scale, offset = 1.0 + change[0], change[1]
    return conv.weight * scale[:, None, None, None], conv.bias * scale + offset


class Network(nn.Module):
    """RGB in 0..1, shape [n, 3, h, w], to RGB of `scale` times the size; not clamped (see `upscale`)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        channels, scale = architecture.channels, architecture.scale
        self.architecture = architecture
        self.by: type[Plain] = Plain
        self.head = conv3(3, channels)
        self.blocks = nn.ModuleList(Block(architecture) for _ in range(architecture.blocks))
        self.tail = conv3(channels, channels)
        self.fuse = nn.Conv2d(4 * channels, channels, 1)
        self.up = conv3(channels, 3 * scale * scale)
        # Zero: training starts at bicubic quality instead of learning it.
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)
        if architecture.conditioned:
            hidden = HIDDEN[architecture.inputs]
            outputs = nn.Linear(hidden, 3 * architecture.blocks * 2 * channels)
            # Zero: training starts from a network that does the same for every file.
            nn.init.zeros_(outputs.weight)
            nn.init.zeros_(outputs.bias)
            self.cond = nn.Sequential(nn.Linear(architecture.inputs, hidden), nn.ReLU(), outputs)
        self.register_buffer("base", cubic_kernel(scale).float(), persistent=False)

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """All of `x` under one `condition` [inputs] or each under its own [n, inputs]; if none, as a clean file."""
        scale = self.architecture.input_scale
        f0 = self.head(x * scale if scale != 1.0 else x)
        h, first = f0, None
        for block, changes in zip(self.blocks, self.changes(condition), strict=True):
            h, o1 = block(h, changes, self.by)
            first = h if first is None else first
        g = self.by.convolve(h, *folded(self.tail, None), False)
        c = self.by.fuse([f0, g, first, o1], self.fuse.weight, self.fuse.bias)
        residual = self.by.convolve(c, *folded(self.up, None), False)
        if scale != 1.0:
            residual = residual / scale
        return functional.pixel_shuffle(residual + self.phases(x), self.architecture.scale)

    def changes(self, condition: Tensor | None) -> Tensor | list[None]:
        """[blocks, 3, 2, C] or [blocks, 3, n, 2, C]: what `condition` does to each convolution (the file's order)."""
        shape = self.architecture
        if not shape.conditioned:
            return [None] * shape.blocks
        if condition is None:
            condition = self.head.weight.new_tensor((*CLEAN, NONE, NONE)[: shape.inputs])
        # In full precision: these few numbers change every pixel.
        with torch.autocast(condition.device.type, enabled=False):
            changes = self.cond(condition).view(*condition.shape[:-1], shape.blocks, 3, 2, shape.channels)
            return changes if condition.dim() == 1 else changes.permute(1, 2, 0, 3, 4)

    def phases(self, x: Tensor) -> Tensor:
        """The bicubic base before the pixel shuffle, edges replicated."""
        # Under autocast too in full precision: bfloat16 would lose 1/256 of the picture itself.
        with torch.autocast(x.device.type, enabled=False):
            return functional.conv2d(functional.pad(x, (2, 2, 2, 2), mode="replicate"), self.base, groups=3)

    @torch.no_grad()
    def upscale(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        """The output that ships: clamped to 0..1."""
        return self(x, condition).clamp(0.0, 1.0)


def cubic_kernel(scale: int) -> Tensor:
    """Weights [3 s^2, 1, 5, 5]: each output phase of a bicubic (a = -0.5) enlargement as a 5x5 filter."""
    rows = torch.from_numpy(cubic_phases(scale))
    kernel = torch.einsum("yi,xj->yxij", rows, rows).reshape(scale * scale, 1, 5, 5)
    return kernel.repeat(3, 1, 1, 1)


@torch.no_grad()
def between(network: Network, layers: Network, share: float) -> Network:
    """`network` with the weights of its layers moved by `share` to those of `layers`; what has no counterpart stays.

    0 is `network`; at 1 the layers are the other's, under the condition of `network`. Bit by bit what the engine does
    (`mixed.rs`), so that both round to the same bytes.
    """
    found, others, share = Network(network.architecture), layers.state_dict(), torch.tensor(share)
    moved = {name: one + share * (others.get(name, one) - one) for name, one in network.state_dict().items()}
    found.load_state_dict(moved)
    found.by = network.by
    return found


@torch.no_grad()
def in_bytes(network: Network) -> Network:
    """What ships: weights of the inner convolutions are whole multiples, -127 to 127, of a number of each channel.

    The engine does the same when it reads a file (`bytes.rs`, which says why), bit by bit.
    """
    found = Network(network.architecture)
    found.load_state_dict(network.state_dict())
    found.by = network.by
    for conv in [*(one for block in found.blocks for one in (block.conv1, block.conv2, block.conv3)), found.tail]:
        largest = conv.weight.abs().amax((1, 2, 3), keepdim=True)
        # A number divided by a tensor is its reciprocal's product to PyTorch, which rounds twice.
        scale = torch.full_like(largest, 127.0) / torch.where(largest > 0.0, largest, 1.0)
        bytes_of = rounded((conv.weight * scale).double().flatten(2)).view_as(conv.weight)
        conv.weight.copy_(bytes_of.to(conv.weight.dtype) * (largest / 127.0))
    return found


def rounded(exact: Tensor) -> Tensor:
    """Kernels [outputs, inputs, 9] to integers; where a kernel's sum is off by more than a half, those are rounded the
    other way that cost least."""
    whole = exact.round()
    while True:
        off = exact - whole
        total = off.sum(2, keepdim=True)
        way = total.sign() * (total.abs() > 0.5)
        if not way.any():
            return whole
        whole.scatter_add_(2, (off * way).argmax(2, keepdim=True), way)
