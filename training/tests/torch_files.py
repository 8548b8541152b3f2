"""Files of weights in the containers that PyTorch writes, and in safetensors."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file


def save_zip(content: dict, path: Path) -> None:
    torch.save(content, path)


def save_legacy(content: dict, path: Path) -> None:
    torch.save(content, path, _use_new_zipfile_serialization=False)


def save_safetensors(state: dict, path: Path) -> None:
    save_file(state, path, metadata={"format": "pt"})
