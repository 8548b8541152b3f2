"""The Compact network (SRVGGNetCompact, 64 channels, 32 convolutions, 4x) with seeded random weights, written three
ways: our weight file, ONNX, and ncnn's own two files. Every engine then does the same work."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np

CHANNELS, CONVS, SCALE = 64, 32, 4
MACS_PER_PIXEL = 9 * (3 * CHANNELS + CONVS * CHANNELS**2 + CHANNELS * 3 * SCALE**2)


def layers(in_bytes: bool, seed: int = 1) -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray | None]]:
    """Name, weights (OIHW), bias, PReLU slopes of every convolution. Gains keep the values near 1.

    `in_bytes` rounds the body's weights as ours are that ship: to whole multiples, -127 to 127, of a number of each
    output channel.
    """
    random = np.random.default_rng(seed)
    gain = np.sqrt(2 / (1 + 0.25**2))

    def conv(name: str, out: int, read: int, gain: float, slopes: bool):
        weights = random.standard_normal((out, read, 3, 3)) * gain / np.sqrt(9 * read)
        bias = random.standard_normal(out) * 0.02
        slope = 0.25 + 0.1 * random.standard_normal(out) if slopes else None
        return name, *(None if part is None else part.astype("f4") for part in (weights, bias, slope))

    body = [conv(f"body.{i}", CHANNELS, CHANNELS, gain, True) for i in range(CONVS)]
    for _, weights, _, _ in body if in_bytes else []:
        step = np.abs(weights).max(axis=(1, 2, 3), keepdims=True) / np.float32(127)
        weights[:] = np.round(weights / step) * step
    return [conv("head", CHANNELS, 3, gain, True), *body, conv("up", 3 * SCALE**2, CHANNELS, 0.2, False)]


def write_ours(path: Path, in_bytes: bool) -> None:
    """safetensors: a length, a JSON header, the numbers."""
    header: dict[str, object] = {
        "__metadata__": {
            "format": "upscale-1",
            "name": "compact",
            "arch": "compact",
            "activation": "prelu",
            "channels": str(CHANNELS),
            "blocks": str(CONVS),
            "scale": str(SCALE),
            "input_scale": "1",
        }
    }
    parts, offset = [], 0
    for name, weights, bias, slopes in layers(in_bytes):
        for part, values in (("weight", weights), ("bias", bias), ("slope", slopes)):
            if values is not None:
                end = offset + values.nbytes
                header[f"{name}.{part}"] = {"dtype": "F32", "shape": values.shape, "data_offsets": [offset, end]}
                parts.append(values.tobytes())
                offset = end
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def write_onnx(path: Path, size: int, in_bytes: bool) -> None:
    """A fixed input shape: every engine may prepare for exactly this size."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, constants, last = [], [], "x"

    def constant(name: str, values: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(values, name))
        return name

    for name, weights, bias, slopes in layers(in_bytes):
        inputs = [last, constant(f"{name}.weight", weights), constant(f"{name}.bias", bias)]
        nodes.append(helper.make_node("Conv", inputs, [name], kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
        last = name
        if slopes is not None:
            last = f"{name}.prelu"
            inputs = [name, constant(f"{name}.slope", slopes.reshape(-1, 1, 1))]
            nodes.append(helper.make_node("PRelu", inputs, [last]))
    shuffle = helper.make_node("DepthToSpace", [last], ["shuffled"], blocksize=SCALE, mode="CRD")
    factors = constant("factors", np.array([1, 1, SCALE, SCALE], "f4"))
    nearest = dict(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    base = helper.make_node("Resize", ["x", "", factors], ["base"], **nearest)
    nodes += [shuffle, base, helper.make_node("Add", ["shuffled", "base"], ["y"])]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, side, side])
        for name, side in (("x", size), ("y", size * SCALE))
    ]
    graph = helper.make_graph(nodes, "compact", ends[:1], ends[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    onnx.save(model, path)


def write_ncnn(param: Path, binary: Path, in_bytes: bool) -> None:
    """ncnn's text of layers and its raw numbers; weights carry a zero flag (float32), bias and slopes do not."""
    lines = ["Input x 0 1 x", "Split split 1 2 x x_0 x_1"]
    last, numbers = "x_0", []
    for name, weights, bias, slopes in layers(in_bytes):
        out = weights.shape[0]
        lines.append(f"Convolution {name} 1 1 {last} {name} 0={out} 1=3 4=1 5=1 6={weights.size}")
        numbers += [struct.pack("<I", 0), weights.tobytes(), bias.tobytes()]
        last = name
        if slopes is not None:
            last = f"{name}.prelu"
            lines.append(f"PReLU {last} 1 1 {name} {last} 0={slopes.size}")
            numbers.append(slopes.tobytes())
    lines.append(f"PixelShuffle shuffle 1 1 {last} shuffled 0={SCALE}")
    lines.append(f"Interp base 1 1 x_1 base 0=1 1={SCALE}.0 2={SCALE}.0")
    lines.append("BinaryOp add 2 1 shuffled base y 0=0")
    names = {name for line in lines for name in line.split()[4 : 4 + sum(map(int, line.split()[2:4]))]}
    param.write_text("\n".join(["7767517", f"{len(lines)} {len(names)}", *lines]) + "\n")
    binary.write_bytes(b"".join(numbers))


def picture(size: int) -> np.ndarray:
    """A smooth picture with a tenth of noise, [1, 3, size, size] in 0..1."""
    random = np.random.default_rng(7)
    y, x = np.mgrid[0:size, 0:size].astype("f4")
    smooth = [0.5 + 0.5 * np.sin(0.11 * x) * np.cos(0.07 * y + colour) for colour in range(3)]
    noise = random.random((3, size, size))
    return (0.9 * np.stack(smooth) + 0.1 * noise).astype("f4")[None]
