"""What of a picture is shown when two looks are compared."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from upscale_training import look_blind
from upscale_training.look_blind import MARGIN, SIDE, SOURCE, part, versions


def striped(side: int) -> np.ndarray:
    """Flat, but for stripes below and right of the middle of its first SOURCE pixels."""
    picture = np.full((side, side, 3), 128, np.uint8)
    half = min(side, SOURCE) // 2
    picture[half::2, half:] = 200
    return picture


def test_a_small_file_is_enlarged_as_it_came_and_its_busiest_part_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "small.png"
    Image.fromarray(striped(300)).save(path)
    file, picture, (top, left) = part(path)
    assert file == path.read_bytes()
    assert picture.shape == (300, 300, 3)
    assert min(top, left) >= 150 - 1
    assert max(top, left) + SIDE <= 300


def test_of_a_large_file_a_corner_of_its_own_kind_is_taken(tmp_path: Path) -> None:
    for name, kind in (("large.png", "PNG"), ("large.jpg", "JPEG")):
        Image.fromarray(striped(900)).save(tmp_path / name)
        file, picture, _ = part(tmp_path / name)
        with Image.open(io.BytesIO(file)) as image:
            assert (image.format, image.size) == (kind, (SOURCE, SOURCE))
        assert picture.shape == (SOURCE, SOURCE, 3)


def test_the_second_look_is_the_other_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.png"
    Image.fromarray(striped(300)).save(path)
    made = {"new": 10, "old": 20}

    def enlarged(program: Path, file: bytes, scale: int, *flags: str) -> tuple[np.ndarray, str]:
        assert file == path.read_bytes()
        return np.full((300 * scale, 300 * scale, 3), made[program.name] + len(flags[1]), np.uint8), ""

    monkeypatch.setattr(look_blind, "enlarged", enlarged)
    programs = Path("new"), Path("old")
    name, ours, other = versions(programs, path, ["natural", "crisp"], 2)
    assert name == "one.png" and ours.shape == other.shape == (2 * SIDE, 2 * SIDE, 3)
    assert (ours == 17).all() and (other == 25).all()


@pytest.mark.parametrize("side", [100, 300])
def test_a_model_sees_what_is_shown_and_a_little_around_it(
    side: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, model = tmp_path / "one.png", tmp_path / "model.param"
    drawn = np.random.default_rng(7).integers(0, 255, (side, side, 3), np.uint8)
    Image.fromarray(drawn).save(path)

    def enlarged(program: Path, file: bytes, scale: int, *flags: str) -> tuple[np.ndarray, str]:
        with Image.open(io.BytesIO(file)) as image:
            seen = np.asarray(image)
        assert flags != ("--model", str(model)) or max(seen.shape) <= SIDE + 2 * MARGIN
        return seen.repeat(scale, axis=0).repeat(scale, axis=1), ""

    monkeypatch.setattr(look_blind, "enlarged", enlarged)
    _, ours, other = versions((Path("p"), Path("p")), path, ["crisp", str(model)], 4)
    assert ours.shape == (4 * SIDE, 4 * SIDE, 3)
    np.testing.assert_array_equal(ours, other)
