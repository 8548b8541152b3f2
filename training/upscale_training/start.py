"""What a training has come to, to go on from: `python -m upscale_training.start CHECKPOINT OUT.safetensors`.

Writes the averaged network in half precision, for `start_from` of a recipe, and beside it, as OUT-critic.safetensors,
the critic of an adversarial training, for `critic_from`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from .adversarial import keep_critic
from .export import current_commit
from .train import averaged
from .weights import save_weights


def start(checkpoint: Path, out: Path, commit: str) -> None:
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    name, steps = state["recipe"]["name"], state["step"]
    save_weights(averaged(state), out, name=name, commit=commit, steps=steps, dtype=torch.float16)
    if state["run"] == "AdversarialRun":
        keep_critic(state, out.with_name(f"{out.stem}-critic.safetensors"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    start(arguments.checkpoint, arguments.out, current_commit())


if __name__ == "__main__":
    main()
