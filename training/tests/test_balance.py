"""The balance of colours: what the service's own does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import other_networks as nets
from conftest import drawn_picture
from torch_files import save_zip
from upscale_training.balance import balanced

SCALE, TINT = 4, (0.03, -0.02, 0.0)


def tinting() -> nets.State:
    """A network that repeats every pixel, in other colours."""
    state = nets.make_compact(SCALE)
    last = [name for name in state if name.endswith(".bias")][-1].removesuffix(".bias")
    state[f"{last}.weight"].zero_()
    state[f"{last}.bias"].copy_(torch.tensor(TINT).repeat_interleave(SCALE**2))
    return state


def test_a_tint_is_taken_back_as_the_service_takes_it(upscale: Path, tmp_path: Path):
    source = drawn_picture(5, 72, 96)
    source[8:40, 8:40], source[30:60, 50:90] = 255, 0
    small, model, out = tmp_path / "small.png", tmp_path / "tint.pth", tmp_path / "out.png"
    Image.fromarray(source).save(small)
    save_zip({"params": tinting()}, model)
    subprocess.run([upscale, "file", small, "--out", out, "--model", model], check=True, capture_output=True)
    served = np.asarray(Image.open(out).convert("RGB")).astype(int)
    repeated = source.repeat(SCALE, axis=0).repeat(SCALE, axis=1) / 255.0 + np.array(TINT)
    made = (repeated.clip(0.0, 1.0) * 255.0).round().astype(np.uint8)
    ours = balanced(source, made, SCALE).astype(int)
    assert np.abs(ours - served).max() <= 2
    assert np.abs(ours - served).mean() < 0.3 < 2.0 < np.abs(made.astype(int) - served).mean()
    # Pure white and black with nothing else beside them stay so.
    assert (ours[40:150, 40:150] == 255).all() and (ours[128:230, 210:350] == 0).all()
