"""Adds to a finished network what other trainings changed: `python -m upscale_training.added BASE --out FOLDER
--faces FOLDER --plus SHARE LATER EARLIER ... --gates FILE`.

What one training changed holds on a neighbour of its start too (Ilharco et al. 2023), and more of it, or less, than it
took: `--plus 0.5 LATER EARLIER` onto LATER itself is one and a half times as much. A face network is judged beside the
natural look: when that becomes crisper, what its layers gained is added to the faces as well. LATER and EARLIER are
weight files; what one of them lacks, as layers of a look lack a condition, stays as it is in BASE.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import torch

from .export import current_commit, plus, save_golden
from .face_card import opening
from .network import Network
from .weights import load_weights, save_weights

Term = tuple[float, Path, Path]


def added(base: Network, terms: list[tuple[float, Network, Network]]) -> Network:
    """A network of `base`'s shape, with `share` of `later - earlier` of every term in each tensor that all have."""
    found, sums = Network(base.architecture), base.state_dict()
    for share, later, earlier in terms:
        sums = plus(sums, share, later.state_dict(), earlier.state_dict())
    found.load_state_dict(sums)
    return found


def made_of(base: Path, terms: list[Term]) -> str:
    """The section of the card that says so."""
    lines = [f"- {share:g} of what {named(later)} has over {named(earlier)}" for share, later, earlier in terms]
    parts = "\n".join(lines)
    return f"""
## Made of
{named(base)}, and added to it (`added.py`):

{parts}

Names end with the commit at which an older file shipped; its card there has its training.
"""


def named(path: Path) -> str:
    return f"{path.name} (sha256 {hashlib.sha256(path.read_bytes()).hexdigest()})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plus", nargs=3, action="append", required=True, metavar=("SHARE", "LATER", "EARLIER"))
    parser.add_argument("--faces", type=Path, required=True, help="the folder trained on, for its sources")
    parser.add_argument("--gates", type=Path, help="what face_gates.py printed")
    arguments = parser.parse_args()
    base, facts = load_weights(arguments.base)
    terms = [(float(share), Path(later), Path(earlier)) for share, later, earlier in arguments.plus]
    network = added(base, [(share, *(load_weights(path)[0] for path in paths)) for share, *paths in terms])
    name = facts["name"]
    path = arguments.out / f"{name}.safetensors"
    # Before it is written: BASE may lie there.
    ending = made_of(arguments.base, terms)
    save_weights(network, path, name=name, commit=current_commit(), steps=int(facts["steps"]), dtype=torch.float16)
    save_golden(load_weights(path)[0], arguments.out / f"{name}.golden.safetensors")
    gates = arguments.gates.read_text(encoding="utf-8") if arguments.gates else ""
    text = opening(path, base.architecture.scale, arguments.faces, gates) + ending
    (arguments.out / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
