import json

import numpy as np
import pytest
from PIL import Image

from conftest import drawn_picture
from upscale_training import blind


def test_pairs_are_shuffled_and_the_key_says_where_ours_is(tmp_path, monkeypatch):
    for seed in range(8):
        Image.fromarray(drawn_picture(seed, 96, 96)).save(tmp_path / f"{seed}.png")
    monkeypatch.setattr(blind, "read_network", lambda path: (Bright(), {}))
    monkeypatch.setattr(
        blind, "network_enlarger", lambda *_: lambda small, scale: np.full((96 * 4, 96 * 4, 3), 255, np.uint8)
    )
    monkeypatch.setattr("sys.argv", ["blind", "draw", str(tmp_path), "--weights", "w", "--out", str(tmp_path / "out")])
    blind.command(None, blind.draw, blind.flags)
    key = json.loads((tmp_path / "out/key.json").read_text())
    assert len(key) == 8 and {one["ours"] for one in key.values()} == {"left", "right"}
    page = np.asarray(Image.open(tmp_path / "out/sheet-01.png"))
    # Ours is white here: the first pair's side of that name is.
    x = blind.GAP if key["1"]["ours"] == "left" else 2 * blind.GAP + blind.SIDE * 4
    assert page[blind.HEAD + 5, x + 5].tolist() == [255, 255, 255]
    said = [f"{number} {one['ours']}" for number, one in key.items()]
    assert blind.tally(key, [*said[:5], "6 same", ""]) == {"ours": 5, "no difference": 1}
    with pytest.raises(ValueError, match="left, right or same"):
        blind.tally(key, ["1 middle"])


class Bright:
    class architecture:
        scale = 4


def test_a_jpeg_is_told_by_its_tables_and_a_png_is_clean(tmp_path):
    picture = Image.fromarray(drawn_picture(1, 64, 64))
    picture.save(tmp_path / "a.jpg", quality=60)
    picture.save(tmp_path / "a.png")
    assert blind.read_with_condition(tmp_path / "a.jpg")[1] == blind.jpeg_condition(60, 1.0)
    assert blind.read_with_condition(tmp_path / "a.png")[1] == blind.CLEAN
