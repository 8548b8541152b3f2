"""Weight files: `safetensors` with the shape of the network in the metadata, the form the Rust engine reads.

Tensors are named as in network.py (`head.weight`, `blocks.0.conv1.weight`, ...), laid out OIHW, F16.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save

from .condition import FILE_INPUTS, SOURCE_INPUTS
from .network import Architecture, Network

FORMAT = "upscale-1"
# What the numbers of a condition are, by how many there are.
CONDITIONS = {FILE_INPUTS: "jpeg-4", SOURCE_INPUTS: "source-6"}
# What the engine runs.
ARCHS = ("residual", "span")


def save_weights(network: Network, path: Path, *, name: str, commit: str, steps: int, dtype: torch.dtype) -> None:
    """Writes `network`'s tensors as `dtype`, through a neighbour file so that a reader never sees half of one."""
    shape = network.architecture
    if shape.arch not in ARCHS:
        raise ValueError(f"the engine runs {' and '.join(ARCHS)}, not {shape.arch}")
    metadata = {
        "format": FORMAT,
        "arch": shape.arch,
        "activation": shape.activation,
        "channels": str(shape.channels),
        "blocks": str(shape.blocks),
        "scale": str(shape.scale),
        "input_scale": f"{shape.input_scale:g}",
        "name": name,
        "commit": commit,
        "steps": str(steps),
    }
    if shape.conditioned:
        metadata["condition"] = CONDITIONS[shape.inputs]
    tensors = {key: value.detach().to(kind_of(key, dtype)).contiguous() for key, value in network.state_dict().items()}
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(in_order(save(tensors, metadata)))
    unfinished.replace(path)


def in_order(content: bytes) -> bytes:
    """The same file with its metadata sorted: safetensors shuffles it, and the same weights would get another SHA-256
    each time. A header is its length in eight bytes and JSON, with spaces up to a multiple of eight."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[8 + length :]


def kind_of(name: str, dtype: torch.dtype) -> torch.dtype:
    """The condition's few numbers stay whole: they multiply everything else."""
    return torch.float32 if name.startswith("cond.") else dtype


def load_weights(path: Path) -> tuple[Network, dict[str, str]]:
    """The network in float32 and the file's metadata; raises on a name or a shape that does not fit."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        tensors = {key: file.get_tensor(key).float() for key in file.keys()}  # noqa: SIM118 (it is no dict)
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{path}: format is {metadata.get('format')!r}, this reader knows {FORMAT!r}")
    inputs = {name: count for count, name in CONDITIONS.items()}.get(metadata.get("condition", ""))
    network = Network(
        Architecture(
            scale=int(metadata["scale"]),
            channels=int(metadata["channels"]),
            blocks=int(metadata["blocks"]),
            arch=metadata["arch"],
            activation=metadata["activation"],
            input_scale=float(metadata["input_scale"]),
            conditioned=inputs is not None,
            inputs=inputs or FILE_INPUTS,
        )
    )
    network.load_state_dict(tensors)
    return network, metadata
