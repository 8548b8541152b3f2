"""What other trainings changed, added to a network."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from test_network import stirred
from upscale_training import added as module
from upscale_training.added import added
from upscale_training.network import Architecture
from upscale_training.weights import load_weights, save_weights

SHAPE = Architecture(2, 6, 2, conditioned=True, inputs=6)


def moved(by: float):
    """The same layers without a condition, moved."""
    found = stirred(replace(SHAPE, conditioned=False))
    with torch.no_grad():
        found.up.bias += by
    return found


def test_shares_of_what_changed_are_added_and_what_a_term_lacks_stays():
    base = stirred(SHAPE)
    found = added(base, [(0.5, moved(1.0), moved(0.0)), (-0.25, moved(2.0), moved(1.0))])
    torch.testing.assert_close(found.up.bias, base.up.bias + 0.25)
    for name, value in base.state_dict().items():
        assert name == "up.bias" or (found.state_dict()[name] == value).all()


def test_the_command_writes_weights_golden_and_a_card_that_says_of_what(tmp_path, monkeypatch):
    def file(name: str, network) -> Path:
        path = tmp_path / f"{name}.safetensors"
        save_weights(network, path, name="face-x2", commit="c", steps=7, dtype=torch.float32)
        return path

    base, later, earlier = file("base", stirred(SHAPE)), file("later", moved(1.0)), file("earlier", moved(0.0))
    gates = tmp_path / "gates.txt"
    gates.write_text("holds  everything\n")
    (tmp_path / "SOURCES.tsv").write_text(
        "file\tlicence\tright_eye_x,y…\nportraits/a.png\tCC0\t1,1,2,1,1,2,1,3,2,3\n", encoding="utf-8"
    )
    words = ["added", base, "--out", tmp_path, "--faces", tmp_path, "--gates", gates, "--plus", "0.5", later, earlier]
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    module.main()
    found, facts = load_weights(tmp_path / "face-x2.safetensors")
    torch.testing.assert_close(found.up.bias, stirred(SHAPE).up.bias + 0.5, atol=1e-3, rtol=0.0)
    assert facts["steps"] == "7" and (tmp_path / "face-x2.golden.safetensors").exists()
    text = (tmp_path / "face-x2.md").read_text()
    for part in ("Enlarges faces 2 times", "holds  everything", "CC0", "- 0.5 of what later.safetensors (sha256 "):
        assert part in text, part


def test_it_asks_for_what_is_to_be_added(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["added", "base.safetensors", "--out", "."])
    with pytest.raises(SystemExit):
        module.main()
