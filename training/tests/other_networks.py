"""The networks that people bring with them, as functions of their state dictionaries: written from the papers and the
names that published files have, with random weights. What `upscale` makes of such a file must be what these make."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

State = dict[str, Tensor]

DIV2K_MEAN = torch.tensor([0.4488, 0.4371, 0.4040])[None, :, None, None]


class Weights:
    """A state dictionary in the making: seeded, with gains that keep values near 1."""

    def __init__(self, seed: int) -> None:
        self.state: State = {}
        self.generator = torch.Generator().manual_seed(seed)

    def conv(self, name: str, out: int, read: int, side: int = 3, gain: float = 1.0) -> None:
        spread = gain / (read * side * side) ** 0.5
        self.state[f"{name}.weight"] = torch.randn(out, read, side, side, generator=self.generator) * spread
        self.state[f"{name}.bias"] = torch.randn(out, generator=self.generator) * 0.02

    def picture(self, name: str) -> None:
        """Around middle gray, so that the clamp to 0..1 hides nothing."""
        self.state[f"{name}.bias"] += 0.5


def conv(state: State, name: str, x: Tensor) -> Tensor:
    weight = state[f"{name}.weight"]
    return F.conv2d(x, weight, state[f"{name}.bias"], padding=weight.shape[-1] // 2)


def leaky(x: Tensor) -> Tensor:
    return F.leaky_relu(x, 0.2)


@dataclass(frozen=True)
class Names:
    """What RRDBNet's convolutions are called; `{b}`, `{d}`, `{c}` are the block, the dense block, the convolution."""

    first: str
    dense: str
    body: str
    ups: tuple[str, ...]
    high: str
    last: str

    def dense_conv(self, block: int, dense: int, part: int) -> str:
        return self.dense.format(b=block, d=dense + 1, c=part + 1)


def old_names(blocks: int, ups: int) -> Names:
    """ESRGAN's first publication numbers the parts of a sequence: an enlargement is three of them."""
    up = tuple(f"model.{3 * i + 3}" for i in range(ups))
    dense = "model.1.sub.{b}.RDB{d}.conv{c}.0"
    return Names("model.0", dense, f"model.1.sub.{blocks}", up, f"model.{3 * ups + 2}", f"model.{3 * ups + 4}")


def new_names(ups: int) -> Names:
    up = tuple(f"conv_up{i + 1}" for i in range(ups))
    return Names("conv_first", "body.{b}.rdb{d}.conv{c}", "conv_body", up, "conv_hr", "conv_last")


def bsrgan_names(ups: int) -> Names:
    up = tuple(f"upconv{i + 1}" for i in range(ups))
    return Names("conv_first", "RRDB_trunk.{b}.RDB{d}.conv{c}", "trunk_conv", up, "HRconv", "conv_last")


def make_rrdb(names: Names, blocks: int, read: int, channels: int = 12, growth: int = 7, seed: int = 1) -> State:
    weights = Weights(seed)
    weights.conv(names.first, channels, read)
    for block in range(blocks):
        for dense in range(3):
            for part in range(5):
                out = channels if part == 4 else growth
                weights.conv(names.dense_conv(block, dense, part), out, channels + part * growth, gain=1.3)
    for name in (names.body, *names.ups, names.high):
        weights.conv(name, channels, channels, gain=1.2)
    weights.conv(names.last, 3, channels, gain=0.1)
    weights.picture(names.last)
    return weights.state


def run_rrdb(state: State, names: Names, x: Tensor) -> Tensor:
    """[1, 3, h, w] in 0..1 to what RRDBNet makes of it; h and w are multiples of the squares that it reads."""
    side = {3: 1, 12: 2, 48: 4}[int(state[f"{names.first}.weight"].shape[1])]
    head = conv(state, names.first, F.pixel_unshuffle(x, side) if side > 1 else x)
    trunk, block = head, 0
    while f"{names.dense_conv(block, 0, 0)}.weight" in state:
        whole = trunk
        for dense in range(3):
            maps = [whole]
            for part in range(4):
                maps.append(leaky(conv(state, names.dense_conv(block, dense, part), torch.cat(maps, 1))))
            whole = whole + 0.2 * conv(state, names.dense_conv(block, dense, 4), torch.cat(maps, 1))
        trunk, block = trunk + 0.2 * whole, block + 1
    h = head + conv(state, names.body, trunk)
    for up in names.ups:
        h = leaky(conv(state, up, F.interpolate(h, scale_factor=2, mode="nearest")))
    return conv(state, names.last, leaky(conv(state, names.high, h)))


def make_compact(scale: int, channels: int = 10, convs: int = 3, seed: int = 2) -> State:
    weights = Weights(seed)
    for i in range(convs + 1):
        weights.conv(f"body.{2 * i}", channels, 3 if i == 0 else channels, gain=1.4)
        weights.state[f"body.{2 * i + 1}.weight"] = torch.rand(channels, generator=weights.generator) * 0.5
    weights.conv(f"body.{2 * convs + 2}", 3 * scale * scale, channels, gain=0.05)
    return weights.state


def run_compact(state: State, scale: int, x: Tensor) -> Tensor:
    last = max(int(name.split(".")[1]) for name in state)
    h = x
    for i in range(0, last, 2):
        h = F.prelu(conv(state, f"body.{i}", h), state[f"body.{i + 1}.weight"])
    return F.pixel_shuffle(conv(state, f"body.{last}", h), scale) + F.interpolate(x, scale_factor=scale, mode="nearest")


def make_span(scale: int, channels: int = 8, normed: bool = True, seed: int = 3) -> State:
    """The merged kernels (`eval_conv`) are of an earlier step, as they are in files saved while training."""
    weights = Weights(seed)
    inner = [f"block_{b}.c{c}_r" for b in range(1, 7) for c in (1, 2, 3)]
    for name in ["conv_1", *inner, "conv_2"]:
        read = 3 if name == "conv_1" else channels
        gain = 0.02 if name == "conv_1" and normed else 1.0
        weights.conv(f"{name}.sk", channels, read, 1, gain)
        weights.conv(f"{name}.conv.0", 2 * read, read, 1)
        weights.conv(f"{name}.conv.1", 2 * channels, 2 * read)
        weights.conv(f"{name}.conv.2", channels, 2 * channels, 1, gain)
        weights.conv(f"{name}.eval_conv", channels, read, gain=gain)
    weights.conv("conv_cat", channels, 4 * channels, 1)
    weights.conv("upsampler.0", 3 * scale * scale, channels, gain=0.1)
    weights.picture("upsampler.0")
    if not normed:
        weights.state["no_norm"] = torch.zeros(1)
    return weights.state


def span_conv(state: State, name: str, x: Tensor) -> Tensor:
    """As it was trained: the zeros outside come first, then the three convolutions, a 1x1 beside them. Or merged."""
    if f"{name}.sk.weight" not in state:
        return conv(state, f"{name}.eval_conv", x)
    h = conv(state, f"{name}.conv.0", F.pad(x, (1, 1, 1, 1)))
    h = F.conv2d(h, state[f"{name}.conv.1.weight"], state[f"{name}.conv.1.bias"])
    return conv(state, f"{name}.conv.2", h) + conv(state, f"{name}.sk", x)


def make_span_f(scale: int, channels: int = 8, seed: int = 4) -> State:
    weights = Weights(seed)
    last = 3 * scale * scale
    near = torch.randn(last, 1, 3, 3, generator=weights.generator) * 0.1
    near[:, :, 1, 1] += 1.0
    weights.state["conv_near.weight"] = near
    for block in range(1, 6):
        for part in (1, 2, 3):
            weights.conv(f"block_{block}.c{part}_r.eval_conv", channels, 3 if (block, part) == (1, 1) else channels)
    weights.conv("conv_cat", channels, 2 * channels + last, 1)
    weights.conv("conv_2.eval_conv", last, channels, gain=0.2)
    weights.picture("conv_2.eval_conv")
    return weights.state


def run_span_f(state: State, scale: int, x: Tensor) -> Tensor:
    near = F.conv2d(x, state["conv_near.weight"], padding=1, groups=3)
    h = first = x
    for block in range(1, 6):
        o3 = h
        for part in (1, 2, 3):
            o3 = span_conv(state, f"block_{block}.c{part}_r", o3)
            o3 = F.silu(o3) if part < 3 else o3
        h = o3 if block == 1 else (o3 + h) * (torch.sigmoid(o3) - 0.5)
        first = h if block == 1 else first
    h = conv(state, "conv_cat", torch.cat([near, h, first], 1))
    return F.pixel_shuffle(span_conv(state, "conv_2", h), scale)


def make_span_plus(scale: int, groups: tuple[int, ...] = (2,), channels: int = 8, seed: int = 8) -> State:
    """`groups` are the blocks between the first and the last of each group; at 1x it ends in a plain convolution."""
    weights = Weights(seed)
    inner = []
    for group, blocks in enumerate(groups, start=1):
        names = ["block_1", *(f"block_n.{i}" for i in range(blocks)), "block_end"]
        inner += [f"feats.{group}.{name}.c{c}_r" for name in names for c in (1, 2, 3)]
        inner.append(f"feats.{group}.conv_2")
        weights.conv(f"feats.{group}.conv_cat", channels, 4 * channels, 1)
    for name in ["feats.0", *inner]:
        read = 3 if name == "feats.0" else channels
        weights.conv(f"{name}.sk", channels, read, 1)
        weights.conv(f"{name}.conv.0", 2 * read, read, 1)
        weights.conv(f"{name}.conv.1", 2 * channels, 2 * read)
        weights.conv(f"{name}.conv.2", channels, 2 * channels, 1)
        weights.conv(f"{name}.eval_conv", channels, read)
    up = "upsampler" if scale == 1 else "upsampler.0"
    weights.conv(up, 3 * scale * scale, channels, gain=0.1)
    weights.picture(up)
    return weights.state


def run_span_plus(state: State, scale: int, x: Tensor) -> Tensor:
    h, group = span_conv(state, "feats.0", x), 1
    while f"feats.{group}.conv_cat.weight" in state:
        h, group = run_span_group(state, f"feats.{group}", h), group + 1
    return conv(state, "upsampler", h) if scale == 1 else F.pixel_shuffle(conv(state, "upsampler.0", h), scale)


def run_span_group(state: State, group: str, x: Tensor) -> Tensor:
    middle: list[str] = []
    while f"{group}.block_n.{len(middle)}.c1_r.eval_conv.weight" in state:
        middle.append(f"block_n.{len(middle)}")
    h = first = tap = x
    for name in ["block_1", *middle, "block_end"]:
        tap = F.mish(span_conv(state, f"{group}.{name}.c1_r", h))
        o3 = span_conv(state, f"{group}.{name}.c3_r", F.mish(span_conv(state, f"{group}.{name}.c2_r", tap)))
        h = (o3 + h) * (torch.sigmoid(o3) - 0.5)
        first = h if name == "block_1" else first
    taps = torch.cat([x, span_conv(state, f"{group}.conv_2", h), first, tap], 1)
    return conv(state, f"{group}.conv_cat", taps)


def make_artcnn(scale: int, channels: int = 8, blocks: int = 3, seed: int = 5) -> State:
    weights = Weights(seed)
    weights.conv("conv0", channels, 3)
    for block in range(blocks):
        for part in ("0.0", "1.0", "2"):
            weights.conv(f"res_block.{block}.conv.{part}", channels, channels)
    weights.conv(f"res_block.{blocks}", channels, channels)
    weights.conv("depth_to_space.upscale.0", 3 * scale * scale, channels, gain=0.1)
    weights.picture("depth_to_space.upscale.0")
    return weights.state


def run_artcnn(state: State, scale: int, x: Tensor) -> Tensor:
    head = h = conv(state, "conv0", x)
    block = 0
    while f"res_block.{block}.conv.2.weight" in state:
        name = f"res_block.{block}.conv"
        o = F.relu(conv(state, f"{name}.1.0", F.relu(conv(state, f"{name}.0.0", h))))
        h, block = h + conv(state, f"{name}.2", o), block + 1
    h = head + conv(state, f"res_block.{block}", h)
    return F.pixel_shuffle(conv(state, "depth_to_space.upscale.0", h), scale)


@dataclass(frozen=True)
class Residual:
    """What the convolutions of EDSR and SRResNet are called; `{b}` is the block, `{u}` the doubling."""

    first: str
    block: tuple[str, str]
    body: str
    up: str
    last: str


BLOCKS = 2
EDSR = {
    "its authors'": Residual(
        "head.0", ("body.{b}.body.0", "body.{b}.body.2"), f"body.{BLOCKS}", "tail.0.{u}", "tail.1"
    ),
    "BasicSR": Residual(
        "conv_first", ("body.{b}.conv1", "body.{b}.conv2"), "conv_after_body", "upsample.{u}", "conv_last"
    ),
}


def make_residual(weights: Weights, names: Residual, channels: int, last_gain: float) -> None:
    """What EDSR and SRResNet share: the first and the last convolution, the blocks, the one after them."""
    weights.conv(names.first, channels, 3)
    for block in range(BLOCKS):
        for part in names.block:
            weights.conv(part.format(b=block), channels, channels)
    weights.conv(names.body, channels, channels)
    weights.conv(names.last, 3, channels, gain=last_gain)


def run_blocks(state: State, names: Residual, x: Tensor, scale: float) -> Tensor:
    for block in range(BLOCKS):
        one, two = (part.format(b=block) for part in names.block)
        x = x + scale * conv(state, two, F.relu(conv(state, one, x)))
    return x


def make_edsr(names: Residual, ups: int, channels: int = 10, seed: int = 6) -> State:
    weights = Weights(seed)
    make_residual(weights, names, channels, last_gain=0.2)
    for up in range(ups):
        weights.conv(names.up.format(u=2 * up), 4 * channels, channels)
    if names.first == "head.0":
        for name, sign in (("sub_mean", -255.0), ("add_mean", 255.0)):
            weights.state[f"{name}.weight"] = torch.eye(3)[:, :, None, None].contiguous()
            weights.state[f"{name}.bias"] = sign * DIV2K_MEAN.flatten()
    return weights.state


def run_edsr(state: State, names: Residual, x: Tensor) -> Tensor:
    """Colours of 0..255 less their mean; published networks of 256 channels have a tenth of each block's own part."""
    mean = DIV2K_MEAN.to(x)
    head = conv(state, names.first, (x - mean) * 255.0)
    channels = head.shape[1]
    h = run_blocks(state, names, head, 0.1 if channels == 256 else 1.0)
    h, up = head + conv(state, names.body, h), 0
    while f"{names.up.format(u=up)}.weight" in state:
        h, up = F.pixel_shuffle(conv(state, names.up.format(u=up), h), 2), up + 2
    return conv(state, names.last, h) / 255.0 + mean


SRRESNET = Residual("conv_first", ("body.{b}.conv1", "body.{b}.conv2"), "conv_hr", "upconv{u}", "conv_last")


def make_srresnet(ups: int, channels: int = 10, seed: int = 7) -> State:
    weights = Weights(seed)
    make_residual(weights, SRRESNET, channels, last_gain=0.1)
    for up in range(ups):
        weights.conv(SRRESNET.up.format(u=up + 1), 4 * channels, channels)
    return weights.state


def run_srresnet(state: State, ups: int, x: Tensor) -> Tensor:
    def bent(x: Tensor) -> Tensor:
        return F.leaky_relu(x, 0.1)

    h = run_blocks(state, SRRESNET, bent(conv(state, "conv_first", x)), 1.0)
    for up in range(ups):
        h = bent(F.pixel_shuffle(conv(state, SRRESNET.up.format(u=up + 1), h), 2))
    base = F.interpolate(x, scale_factor=2**ups, mode="bilinear", align_corners=False)
    return conv(state, "conv_last", bent(conv(state, "conv_hr", h))) + base


def make_dis(ups: int, depthwise: bool, channels: int = 10, seed: int = 9) -> State:
    weights = Weights(seed)
    weights.conv("head", channels, 3)
    bent = ["head_act", *(f"body.{block}.act" for block in range(BLOCKS))]
    for block in range(BLOCKS):
        if depthwise:
            weights.conv(f"body.{block}.dw_conv.depthwise", channels, 1)
            weights.conv(f"body.{block}.dw_conv.pointwise", channels, channels, 1)
        else:
            weights.conv(f"body.{block}.conv1", channels, channels)
            weights.conv(f"body.{block}.conv2", channels, channels)
    weights.state = {name: tensor for name, tensor in weights.state.items() if "body" not in name or "bias" not in name}
    weights.conv("fusion", channels, channels)
    for name in dis_upsamplers(ups):
        weights.conv(f"{name}.conv", 4 * channels, channels)
        bent.append(f"{name}.act")
    weights.conv("tail", 3, channels, gain=0.1)
    for name in bent:
        weights.state[f"{name}.weight"] = torch.rand(channels, generator=weights.generator) * 0.5
    return weights.state


def dis_upsamplers(ups: int) -> list[str]:
    """A single one has no number."""
    return ["upsampler"] if ups == 1 else [f"upsampler.{up}" for up in range(ups)]


def run_dis(state: State, ups: int, x: Tensor) -> Tensor:
    def bent(name: str, x: Tensor) -> Tensor:
        return F.prelu(x, state[f"{name}.act.weight"])

    head = h = F.prelu(conv(state, "head", x), state["head_act.weight"])
    for block in range(BLOCKS):
        name = f"body.{block}"
        if f"{name}.conv1.weight" in state:
            inner = bent(name, F.conv2d(h, state[f"{name}.conv1.weight"], padding=1))
            h = h + F.conv2d(inner, state[f"{name}.conv2.weight"], padding=1)
        else:
            inner = F.conv2d(h, state[f"{name}.dw_conv.depthwise.weight"], padding=1, groups=h.shape[1])
            h = h + bent(name, F.conv2d(inner, state[f"{name}.dw_conv.pointwise.weight"]))
    h = head + conv(state, "fusion", h)
    for name in dis_upsamplers(ups):
        h = bent(name, F.pixel_shuffle(conv(state, f"{name}.conv", h), 2))
    base = x if ups == 0 else F.interpolate(x, scale_factor=2**ups, mode="bilinear", align_corners=False)
    return conv(state, "tail", h) + base


def merged_span(state: State) -> State:
    """What files made to be run only keep of it."""
    return {name: tensor for name, tensor in state.items() if ".sk." not in name and ".conv." not in name}


def run_span(state: State, scale: int, x: Tensor) -> Tensor:
    if "no_norm" not in state:
        x = (x - DIV2K_MEAN.to(x)) * 255.0
    f0 = h = span_conv(state, "conv_1", x)
    first = tap = h
    for block in range(1, 7):
        tap = F.silu(span_conv(state, f"block_{block}.c1_r", h))
        o2 = F.silu(span_conv(state, f"block_{block}.c2_r", tap))
        o3 = span_conv(state, f"block_{block}.c3_r", o2)
        h = (o3 + h) * (torch.sigmoid(o3) - 0.5)
        first = h if block == 1 else first
    g = span_conv(state, "conv_2", h)
    taps = torch.cat([f0, g, first, tap], 1)
    return F.pixel_shuffle(conv(state, "upsampler.0", conv(state, "conv_cat", taps)), scale)
