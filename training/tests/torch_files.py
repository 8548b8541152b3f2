"""Files of weights in every container that PyTorch has had. It still writes two of them; the third is written here."""

from __future__ import annotations

import io
import pickle
import struct
import tarfile
from pathlib import Path

import torch
from safetensors.torch import save_file


def save_zip(content: dict, path: Path) -> None:
    torch.save(content, path)


def save_legacy(content: dict, path: Path) -> None:
    torch.save(content, path, _use_new_zipfile_serialization=False)


def save_safetensors(state: dict, path: Path) -> None:
    save_file(state, path, metadata={"format": "pt"})


class Pickler(pickle.Pickler):
    """Names tensors by the numbers of `keys`."""

    def __init__(self, file: io.BytesIO, keys: dict[int, int]) -> None:
        super().__init__(file, protocol=2)
        self.keys = keys

    def persistent_id(self, value: object) -> str | None:
        return str(self.keys[id(value)]) if isinstance(value, torch.Tensor) else None


def save_tar(state: dict, path: Path) -> None:
    """The container before PyTorch 0.1.10, which no program writes any more; only float tensors."""
    keys = {id(tensor): 100 + i for i, tensor in enumerate(state.values())}
    storages, tensors, weights = io.BytesIO(), io.BytesIO(), io.BytesIO()
    pickle.dump(len(state), storages, protocol=2)
    pickle.dump(len(state), tensors, protocol=2)
    for tensor in state.values():
        key = keys[id(tensor)]
        pickle.dump((key, "cpu", torch.FloatStorage), storages, protocol=2)
        storages.write(struct.pack("<q", tensor.numel()) + tensor.contiguous().numpy().tobytes())
        pickle.dump((key, key, torch.FloatTensor), tensors, protocol=2)
        tensors.write(struct.pack("<ii", tensor.dim(), 0))
        strides = tensor.contiguous().stride()
        tensors.write(struct.pack(f"<{2 * tensor.dim() + 1}q", *tensor.shape, *strides, 0))
    pickle.dump([], storages, protocol=2)
    Pickler(weights, keys).dump(state)
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in (("storages", storages), ("tensors", tensors), ("pickle", weights)):
            info = tarfile.TarInfo(name)
            info.size = len(content.getvalue())
            archive.addfile(info, io.BytesIO(content.getvalue()))
