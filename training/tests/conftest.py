"""Pictures for the tests, drawn by formula: nothing here comes from a file."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from upscale_training.resize import to_8bit

ROOT = Path(__file__).resolve().parents[2]
# Two would wait for each other where the machine has other work.
torch.set_num_threads(1)


def drawn_picture(seed: int, height: int = 192, width: int = 192) -> np.ndarray:
    """Hard-edged shapes over a slope: what an interpolation blurs and a network can learn to keep sharp."""
    draw = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    picture = np.stack([(x + y) / (height + width)] * 3, axis=-1) * draw.random(3)
    for _ in range(24):
        angle, colour = draw.random() * np.pi, draw.random(3)
        across = (x - draw.random() * width) * np.cos(angle) + (y - draw.random() * height) * np.sin(angle)
        along = (y - draw.random() * height) * np.cos(angle) - (x - draw.random() * width) * np.sin(angle)
        inside = (np.abs(across) < draw.uniform(2, 12)) & (np.abs(along) < draw.uniform(10, 60))
        picture = np.where(inside[..., None], colour, picture)
    return to_8bit(picture)


@pytest.fixture
def picture_folder(tmp_path: Path) -> Path:
    """Six drawn pictures with an attribution file, and one that the file does not name."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    lines = ["file\tsource_repository\tpath\tlicence\tkind\tplacement_x_y_scale"]
    for seed in range(6):
        Image.fromarray(drawn_picture(seed)).save(folder / f"drawn_{seed}.png")
        lines.append(f"drawn_{seed}.png\tnone\tnone\tCC0-1.0\t{'art' if seed % 2 else 'diagram'}\tnone")
    (folder / "ATTRIBUTION.tsv").write_text("\n".join(lines) + "\n")
    Image.fromarray(drawn_picture(99)).save(folder / "not_named.png")
    return folder


@pytest.fixture
def evaluation_folder() -> Path:
    """The benchmark pictures, which no repository may carry; the test is left out where they are not."""
    root = os.environ.get("UPSCALE_TEST_DATA")
    if not root:
        pytest.skip("UPSCALE_TEST_DATA is not set: figures on Set5 are not checked")
    return Path(root) / "eval"


@pytest.fixture
def small_scenes(monkeypatch):
    """The tests' pictures are too small for those of a real run."""
    monkeypatch.setattr("upscale_training.scenes.SIDES", (64,))


@pytest.fixture(scope="session")
def upscale() -> Path:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binary = Path(os.environ.get("UPSCALE_BINARY", target / "debug" / "upscale"))
    if not binary.exists():
        pytest.fail(f"{binary} is missing: `cargo build -p upscale` makes it, UPSCALE_BINARY names another one")
    return binary
