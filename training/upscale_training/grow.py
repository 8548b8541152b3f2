"""Starts a network from a trained one that is narrower or shallower, so that at first it does the same.

Net2Net (Chen et al. 2015): the old channels keep their weights and do not listen to the new ones; new blocks stand
before the last one and add nothing until they have learnt to. A network for 4x may become one for 2x: it adds to the
bicubic base the mean of what it added to four pixels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .network import Network


@torch.no_grad()
def grow(old: Network, new: Network) -> None:
    """Writes `old` into `new`; new channels keep their random start."""
    few, many = old.architecture, new.architecture
    halve = (few.scale, many.scale) == (4, 2)
    scale = 2 if halve else few.scale
    if (scale, few.arch, few.activation, few.input_scale) != (many.scale, many.arch, many.activation, 1.0):
        raise ValueError(f"{many} cannot do what {few} does")
    if few.channels > many.channels or few.blocks > many.blocks or few.conditioned > many.conditioned:
        raise ValueError(f"{many} is smaller than {few}")
    pairs = [(getattr(old, name), getattr(new, name), parts) for name, parts in (("head", 1), ("tail", 1), ("fuse", 4))]
    places = [*range(few.blocks - 1), many.blocks - 1]
    for block, place in zip(old.blocks, places, strict=True):
        pairs += [(getattr(block, f"conv{i}"), getattr(new.blocks[place], f"conv{i}"), 1) for i in (1, 2, 3)]
    for mine, yours, parts in [*pairs, (halved(old.up) if halve else old.up, new.up, 1)]:
        embed(mine, yours, parts)
    if few.conditioned:
        embed_rows(old.cond[0], new.cond[0])
        # Of the hidden layer's new numbers nothing is made at first.
        new.cond[2].weight.zero_()
        for mine, yours in ((old.cond[2].weight, new.cond[2].weight), (old.cond[2].bias, new.cond[2].bias)):
            # New blocks and channels hear of nothing at first: their rows are zero.
            rows = yours.view(many.blocks, 3, 2, many.channels, -1)
            few_rows = mine.view(few.blocks, 3, 2, few.channels, -1)
            rows[places, :, :, : few.channels, : few_rows.shape[-1]] = few_rows
    for place in set(range(many.blocks)) - set(places):
        nn.init.zeros_(new.blocks[place].conv3.weight)
        nn.init.zeros_(new.blocks[place].conv3.bias)


def halved(up: nn.Conv2d) -> nn.Conv2d:
    """The last layer of a network for 4x (48 outputs) for 2x (12): means of the 2 x 2 that become one."""

    def mean(value: Tensor) -> Tensor:
        # Colour, then row and column within the pixel's 4 x 4, as the pixel shuffle takes them.
        return value.view(3, 2, 2, 2, 2, *value.shape[1:]).mean(dim=(2, 4)).flatten(0, 2)

    layer = nn.Conv2d(up.in_channels, 12, 3, padding=1)
    layer.weight.copy_(mean(up.weight))
    layer.bias.copy_(mean(up.bias))
    return layer


def embed(old: nn.Conv2d, new: nn.Conv2d, parts: int) -> None:
    """`old` into the first channels of `new`; the inputs are `parts` maps side by side, each grown by itself."""
    rows, sides = old.out_channels, old.weight.shape[2:]
    mine = old.weight.reshape(rows, parts, -1, *sides)
    yours: Tensor = new.weight.reshape(new.out_channels, parts, -1, *sides).clone()
    yours[:rows] = 0.0
    yours[:rows, :, : mine.shape[2]] = mine
    new.weight.copy_(yours.reshape_as(new.weight))
    new.bias[:rows] = old.bias


def embed_rows(old: nn.Linear, new: nn.Linear) -> None:
    """`old` into the first inputs and outputs of `new`, whose other inputs it does not hear at first."""
    rows, columns = old.weight.shape
    new.weight[:rows, columns:] = 0.0
    new.weight[:rows, :columns] = old.weight
    new.bias[:rows] = old.bias
