"""What of a large face is shown."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

from upscale_training.face_blind import SOURCE, as_it_came, window


def test_a_window_lies_in_the_picture_round_its_middle() -> None:
    assert window(np.array([300.0, 200.0]), (1000, 2000), 100) == (slice(150, 250), slice(250, 350))
    assert window(np.array([1990.0, 3.0]), (1000, 2000), 100) == (slice(0, 100), slice(1900, 2000))
    assert window(np.array([20.0, 20.0]), (60, 50), 100) == (slice(0, 100), slice(0, 100))


def test_a_small_file_stays_and_a_large_one_is_cut_round_the_eye(tmp_path: Path) -> None:
    eye = np.array([600.0, 500.0])
    for side in (300, 1000):
        Image.fromarray(np.zeros((side, side, 3), np.uint8)).save(tmp_path / f"{side}.png")
    file, there = as_it_came(tmp_path / "300.png", eye)
    assert file == (tmp_path / "300.png").read_bytes()
    assert (there == eye).all()
    file, there = as_it_came(tmp_path / "1000.png", eye)
    with Image.open(io.BytesIO(file)) as image:
        assert (image.format, image.size) == ("JPEG", (SOURCE, SOURCE))
    assert there.tolist() == [350.0, 350.0]
