"""Turns a checkpoint into what ships: `python -m upscale_training.face_card CHECKPOINT --out FOLDER`.

The checkpoint is one of faces.py or by_condition.py. Weights and golden pair are export.py's. The card's figures are
what face_gates.py printed, given by `--gates FILE`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

from .export import Counter, current_commit, export, listed
from .faces import read_portraits
from .recipe import Recipe

# What each kind of run trained, by its name in the checkpoint.
TRAINED = {
    "FaceRun": "The whole network, with contrast and a critic (`faces.py`).",
    "EarlyFaceRun": "The whole network, by square error (`faces.py`).",
    "ByConditionRun": "Only what the condition changes, for noisy and soft sources, at 2x for coarse JPEGs too; "
    "held for all others (`by_condition.py`).",
}


def card(path: Path, recipe: Recipe, state: dict, folder: Path, gates: str) -> str:
    if "run" not in state:
        raise ValueError("the checkpoint does not say which run made it: it is older than 2026-11-28")
    return f"""{opening(path, recipe.scale, folder, gates)}
## Training
{state["step"]} of {recipe.steps} steps in {state["seconds"] / 60:.0f} minutes of wall clock.
{TRAINED[state["run"]]}
Started from {state["started_from"]}.

### Recipe
{settings(state["recipe"])}

### Scenes
`Scenes` of `scenes.py`; what is neither clean nor a file is as cameras and the internet make pictures.

{settings(state["scenes"])}
"""


def opening(path: Path, scale: int, folder: Path, gates: str) -> str:
    """What the card of every face network begins with: what it is, its figures, its data."""
    people = read_portraits(folder)
    trained = [one for one in people if not one.is_held_out()]
    licences = listed(Counter(one.licence for one in trained))
    content = path.read_bytes()
    return f"""# {path.stem}

Enlarges faces {scale} times, for `face_enhance`; the engine runs it inside the boxes of faces only.
Made by this project; licence as the repository's (Apache-2.0), commercial use: yes.

- file: {path.name}, {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}
- shape, conditions and golden pair: as the general network's
- code at commit {current_commit()}

## Figures
`training/upscale_training/face_gates.py`, the whole program with and without `--face-enhance`, on the
{len(people) - len(trained)} persons who were never trained on:

{gates.strip() or "Not measured at this export."}

## Data
{len(trained)} pictures of faces, each in up to four sizes. Their licences: {licences}.
Four patches in five show them turned, stretched, bent and lit otherwise (`invented.py`).
The network is given what the estimator makes of each.
"""


def settings(chosen: dict) -> str:
    return "\n".join(f"- {key}: {json.dumps(value)}" for key, value in chosen.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--faces", type=Path, required=True, help="the folder trained on, for its sources")
    parser.add_argument("--gates", type=Path, help="what face_gates.py printed")
    parser.add_argument("--start", type=Path, help="weights that training started from, to add what was learned since")
    parser.add_argument("--onto", type=Path, help="weights to add it to, where those are others")
    parser.add_argument("--share", type=float, default=1.0, help="of what was learned, where --start is given")
    parser.add_argument("--name", default="", help="of the files; the recipe's where none is given")
    arguments = parser.parse_args()
    mixed = arguments.start, arguments.share, None, arguments.name, arguments.onto
    path, recipe, state = export(arguments.checkpoint, arguments.out, current_commit(), *mixed)
    gates = arguments.gates.read_text(encoding="utf-8") if arguments.gates else ""
    text = card(path, recipe, state, arguments.faces, gates)
    (arguments.out / f"{recipe.name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
