"""Rankings of several versions: sheets that hide names, and counts that follow the key."""

import json
from argparse import Namespace

import numpy as np
import pytest
from PIL import Image

from upscale_training.ranked import BICUBIC, draw, ranks, tally


def test_a_ranking_names_every_column_once():
    assert ranks("b>a=d>c", 4) == {1: 0, 0: 1, 3: 1, 2: 2}
    for wrong in ("b>a", "b>a=d>c>c", "b>a=b>c", "bad"):
        with pytest.raises(ValueError, match="each of 4 columns"):
            ranks(wrong, 4)


def test_every_pair_is_counted_from_both_sides():
    key = {"1": {"columns": ["x", "y", "z"]}, "2": {"columns": ["z", "x", "y"]}}
    counts = tally(key, ["1 a>b=c", "", "2 a>b>c"])
    assert counts["x", "y"] == {"better": 2}
    assert counts["y", "x"] == {"worse": 2}
    assert counts["z", "y"] == {"same": 1, "better": 1}
    assert counts["x", "z"] == {"better": 1, "worse": 1}


def test_sheets_show_what_all_versions_have_and_hide_their_names(tmp_path):
    generator = np.random.default_rng(2)
    for name, side, pictures in (("small", 70, "abcd"), ("ours", 280, "abc"), ("other", 280, "abcd")):
        (tmp_path / name).mkdir()
        for picture in pictures:
            noise = generator.integers(0, 255, (side, side, 3), dtype=np.uint8)
            Image.fromarray(noise).save(tmp_path / name / f"{picture}.png")
    given = [f"{name}={tmp_path / name}" for name in ("ours", "other")]
    draw(Namespace(pictures=tmp_path / "small", versions=given, out=tmp_path / "out", seed=1))
    key = json.loads((tmp_path / "out" / "key.json").read_text())
    assert sorted(one["picture"] for one in key.values()) == ["a.png", "b.png", "c.png"]
    assert all(sorted(one["columns"]) == sorted([BICUBIC, "ours", "other"]) for one in key.values())
    assert len({tuple(one["columns"]) for one in key.values()}) > 1
    with Image.open(tmp_path / "out" / "sheet-01.png") as page:
        assert page.size == (8 + 3 * 264, 8 + 3 * 278)
    Image.new("RGB", (279, 280)).save(tmp_path / "ours" / "a.png")
    with pytest.raises(ValueError, match="not 4 times"):
        draw(Namespace(pictures=tmp_path / "small", versions=given, out=tmp_path / "out", seed=1))
