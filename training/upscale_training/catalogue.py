"""How many models of a catalogue run here, by what the catalogue says of them: architecture, scale, channels, files.

    python -m upscale_training.catalogue CATALOGUE

CATALOGUE is a JSON file, an object of models by name or a list of them, or a folder with a JSON file for each model.
The fields are OpenModelDB's: `architecture`, `scale`, `inputChannels`, `outputChannels`, `resources` with `platform`.
Its repository keeps them in `data/models`, its site publishes them in one file, `models.json`; neither is a part of
this project. What counts is what is declared: whether a file is what its entry says, `upscale model verify` finds out.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

FAMILIES = {
    "esrgan": "ESRGAN",
    "compact": "Compact",
    "span": "SPAN",
    "artcnn": "ArtCNN",
    "spanf": "SPAN-F",
    "edsr": "EDSR",
    "srresnet": "SRResNet",
    "dis": "DIS",
}
# With DySample, as most are made, it does not run; entries do not say which form a file has.
UNDECIDED = "spanplus"
ENLARGES, RESTORES = (2, 4), 1
PLATFORMS = ("pytorch", "ncnn")
RGB = 3


def read(place: Path) -> list[dict]:
    """The models of a catalogue."""
    if place.is_dir():
        return [json.loads(file.read_text(encoding="utf-8")) for file in sorted(place.glob("*.json"))]
    found = json.loads(place.read_text(encoding="utf-8"))
    return list(found.values()) if isinstance(found, dict) else found


def family_of(model: dict) -> str:
    """`SR-Res-Net` and `srresnet` are one."""
    return str(model.get("architecture", "")).lower().replace("-", "")


def verdict(model: dict) -> str:
    """`enlarges`, `restores`, or why it does not run."""
    family = family_of(model)
    if family == UNDECIDED:
        return "SPANPlus, with DySample or without: the file says"
    if family not in FAMILIES:
        return f"architecture {family or 'not given'}"
    if any(model.get(end, RGB) != RGB for end in ("inputChannels", "outputChannels")):
        return "no RGB"
    files = model.get("resources", [])
    if files and not any(file.get("platform") in PLATFORMS for file in files):
        return "no file of PyTorch or ncnn"
    scale = model.get("scale")
    if scale == RESTORES:
        return "restores"
    return "enlarges" if scale in ENLARGES else f"scale {scale}x"


def table(models: list[dict]) -> str:
    """What runs, by family and scale, and why the others do not."""
    verdicts = [verdict(model) for model in models]
    runs = [word in ("enlarges", "restores") for word in verdicts]
    counted = Counter(
        (FAMILIES[family_of(model)], model["scale"])
        for model, is_running in zip(models, runs, strict=True)
        if is_running
    )
    reasons = Counter(word for word, is_running in zip(verdicts, runs, strict=True) if not is_running)
    count = sum(runs)
    share = 100 * count / max(len(models), 1)
    lines = [f"{count} of {len(models)} run ({share:.0f} %), {verdicts.count('restores')} of them restore at 1x", ""]
    lines += [f"{family:8} {scale}x {number:5}" for (family, scale), number in sorted(counted.items())]
    lines += ["", "the others:"]
    lines += [f"{number:5} {reason}" for reason, number in reasons.most_common()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(read(Path(sys.argv[1]))))
