"""What is counted of a catalogue."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from upscale_training.catalogue import read, table, verdict


def entry(architecture: str, scale: int, channels: int = 3, platform: str = "pytorch") -> dict:
    resources = [{"platform": platform, "type": "pth"}]
    ends = {"inputChannels": channels, "outputChannels": channels}
    return {"architecture": architecture, "scale": scale, "resources": resources, **ends}


MODELS = [
    (entry("esrgan", 4), "enlarges"),
    (entry("compact", 2), "enlarges"),
    (entry("SPAN", 1), "restores"),
    (entry("span", 2, platform="ncnn"), "enlarges"),
    (entry("EDSR", 4), "enlarges"),
    (entry("sr-res-net", 2), "enlarges"),
    (entry("spanplus", 4), "SPANPlus, with DySample or without: the file says"),
    (entry("esrgan+", 4), "architecture esrgan+"),
    (entry("esrgan", 8), "scale 8x"),
    (entry("esrgan", 4, channels=1), "no RGB"),
    (entry("compact", 4, platform="onnx"), "no file of PyTorch or ncnn"),
    (entry("hat", 4), "architecture hat"),
    ({"scale": 4}, "architecture not given"),
]


@pytest.mark.parametrize(("model", "expected"), MODELS)
def test_every_model_has_a_verdict(model: dict, expected: str) -> None:
    assert verdict(model) == expected


@pytest.mark.parametrize("form", ["object", "list", "folder"])
def test_the_three_forms_of_a_catalogue_count_the_same(form: str, tmp_path: Path) -> None:
    models = {f"model-{index}": model for index, (model, _) in enumerate(MODELS)}
    place = tmp_path / "models"
    if form == "folder":
        place.mkdir()
        for name, model in models.items():
            (place / f"{name}.json").write_text(json.dumps(model))
    else:
        place.write_text(json.dumps(models if form == "object" else list(models.values())))
    report = table(read(place))
    assert report.startswith("6 of 13 run (46 %), 1 of them restore at 1x")
    assert "1 architecture hat" in report
