"""Turns a checkpoint into what ships: weights, a golden pair for the Rust test, a model card.

`python -m upscale_training.export CHECKPOINT --out FOLDER --data FOLDER [--eval FOLDER...]`
The card's figures are measured here, from the file just written, by evaluate.py.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save_file

from .condition import CLEAN, FILE_INPUTS, SILENT, SOURCE_INPUTS, UNKNOWN, jpeg_condition, source_inputs
from .data import read_attribution
from .evaluate import table
from .look_gates import LOOKS
from .network import Architecture, Network, between, cubic_kernel, in_bytes
from .recipe import Recipe
from .train import averaged, described
from .weights import CONDITIONS, load_weights, save_weights

SHRUNK = "Shrunk nine times in ten by antialiased bicubic, else by Lanczos3, box or linear kernels"
CLEAN_ONLY = f"{SHRUNK}; no other damage."
DAMAGE = f"""{SHRUNK}.
Of each batch a share went through JPEG (quality 20 to 98, one in five twice with a shifted grid), one in four of
those with blur or noise before; 7 in 10 with a matched condition, 2 unknown, 1 mismatched."""
RESTORING = """A third of the scenes clean; a sixth JPEG of quality 20 to 98, one in five of them twice, one in four
with blur or noise before; half as cameras and the internet make pictures (`camera.py`): softened, shrunk by several
kernels in one step or two, noise of up to 25 levels, half of them then JPEG of quality 30 to 95; 15 in 100 of those
only shrunk by bicubic and softened. The network is given
what the estimator (`estimate.py`) makes of each scene, its softness halfway to the truth where little noise is heard,
and in 3 of 10 nothing."""
# By the run that a checkpoint is of: who taught it, and of what else than above.
TAUGHT = {
    "ApartRun": """ Two finished networks are the teachers (`apart.py`): of photographs and art, half of the scenes,
what training started from, where they are not flat; of all else, with more files among it, the restoring network.""",
}
SCHEDULES = {False: "warm-up and half a cosine", True: "a constant rate, at the end taken down evenly"}
GOLDEN_HEIGHT, GOLDEN_WIDTH = 24, 20
Tensors = dict[str, torch.Tensor]
GOLDEN_CONDITIONS = {
    FILE_INPUTS: (CLEAN, jpeg_condition(75, 1.0), jpeg_condition(30, 0.0)),
    SOURCE_INPUTS: (
        (*CLEAN, *source_inputs(0.0, 0.0)),
        (*CLEAN, *source_inputs(14.0, 0.3)),
        (*jpeg_condition(75, 1.0), *source_inputs(2.0, 1.1)),
        (*jpeg_condition(30, 0.0), SILENT, SILENT),
    ),
}
# Published PSNR-Y on Set5 (the papers' own tables), for scale in the card.
PUBLISHED = {
    2: "FSRCNN 37.00, EDSR-baseline 37.99, SwinIR-light 38.14",
    4: "FSRCNN 30.72, EDSR-baseline 32.09, SwinIR-light 32.44",
}


def golden_input(height: int = GOLDEN_HEIGHT, width: int = GOLDEN_WIDTH) -> torch.Tensor:
    """[1, 3, height, width] in 0..1 by formula: slopes, waves of rising frequency and hard edges; no photograph."""
    y = torch.arange(height, dtype=torch.float64)[:, None]
    x = torch.arange(width, dtype=torch.float64)[None, :]
    planes = []
    for colour in range(3):
        slope = (x + 2.0 * y + 7.0 * colour) / 90.0
        wave = torch.sin(0.02 * (x + 1.0) * (y + 3.0) + colour)
        check = ((x.long() // 3 + y.long() // (4 + colour)) % 2).double()
        planes.append(0.4 * slope + 0.3 * (0.5 + 0.5 * wave) + 0.3 * check)
    return torch.stack(planes)[None].clamp(0.0, 1.0).float()


def save_golden(network: Network, path: Path) -> None:
    """The input and what `network` makes of it in bytes, computed in double precision, stored as float32.

    `output` is of a file of which nothing is known; for a conditioned network `conditions` [n, inputs] and `output.{i}`
    follow.
    """
    exact = Network(network.architecture).double()
    exact.load_state_dict({key: value.double() for key, value in in_bytes(network).state_dict().items()})
    exact.base = cubic_kernel(network.architecture.scale)
    inputs = network.architecture.inputs
    small, unknown = golden_input(), torch.tensor((*UNKNOWN, SILENT, SILENT)[:inputs])
    tensors = {"input": small, "output": exact.upscale(small.double(), unknown.double()).float()}
    if network.architecture.conditioned:
        tensors["conditions"] = torch.tensor(GOLDEN_CONDITIONS[inputs])
        for index, inputs in enumerate(tensors["conditions"]):
            tensors[f"output.{index}"] = exact.upscale(small.double(), inputs.double()).float()
    save_file(tensors, path)


def mixed(average: Tensors, start: Network, share: float, base: Network) -> Tensors:
    """`base`, mostly the start itself, and `share` of what training changed in the start; all are of the same shape.

    Between the two lie networks that keep more of what the start knew (Wortsman et al. 2022), and what was learned
    holds on a neighbour of the start too (Ilharco et al. 2023). What the start did not have, the condition, counts as
    zero there.
    """
    nothing = {name: torch.zeros_like(value) for name, value in average.items() if name.startswith("cond.2.")}
    return average | plus(nothing | base.state_dict(), share, average, nothing | start.state_dict())


def plus(onto: Tensors, share: float, later: Tensors, earlier: Tensors) -> Tensors:
    """`onto`, with `share` of `later - earlier` added to each tensor that all three have."""
    names = onto.keys() & later.keys() & earlier.keys()
    return onto | {name: onto[name] + share * (later[name] - earlier[name]) for name in names}


def layers_alone(network: Network) -> Network:
    """The same layers without a condition."""
    alone = Network(replace(network.architecture, conditioned=False))
    alone.load_state_dict({key: value for key, value in network.state_dict().items() if not key.startswith("cond.")})
    return alone


def export(
    checkpoint: Path,
    out: Path,
    commit: str,
    start: Path | None = None,
    share: float = 1.0,
    mixed_into: Path | None = None,
    name: str = "",
    onto: Path | None = None,
) -> tuple[Path, Recipe, dict]:
    """Writes `<name>.safetensors` and `<name>.golden.safetensors` from the checkpoint's averaged weights.

    `name` is the recipe's where none is given. A `share` of what was learned since `start` is added to the weights
    `onto`, mostly `start` itself.

    Weights that are `mixed_into` those of another file ship without its condition; their golden pair is of the
    natural look.
    """
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)
    recipe = Recipe(**state["recipe"])
    recipe = replace(recipe, name=name or recipe.name)
    if start:
        base = onto or mixed_into or start
        state["average"] = mixed(state["average"], load_weights(start)[0], share, load_weights(base)[0])
        whose = "it" if base.read_bytes() == start.read_bytes() else described(str(base))
        state["started_from"] += f", and added to {whose} in the end: {share:g} of what was learned"
    network = averaged(state)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{recipe.name}.safetensors"
    shipped = layers_alone(network) if mixed_into else network
    save_weights(shipped, path, name=recipe.name, commit=commit, steps=state["step"], dtype=torch.float16)
    # Read back: the golden pair must be of the rounded weights, the ones that ship.
    rounded, _ = load_weights(path)
    ran = between(load_weights(mixed_into)[0], rounded, LOOKS[recipe.scale]["natural"]) if mixed_into else rounded
    save_golden(ran, out / f"{recipe.name}.golden.safetensors")
    return path, recipe, state


def card(
    path: Path, recipe: Recipe, state: dict, data: Path, commit: str, figures: str, mixed_into: Path | None = None
) -> str:
    """The model card in Markdown."""
    golden = f"the output of {mixed_into.stem} in the natural look" if mixed_into else "the output"
    pictures = read_attribution(data)
    kinds = Counter(picture.kind for picture in pictures)
    licences = Counter(picture.licence for picture in pictures)
    # As the file has it: layers of a look leave out the condition that they were trained under.
    shape: Architecture = load_weights(path)[0].architecture
    content = path.read_bytes()
    settings = "\n".join(f"- {key}: {json.dumps(value)}" for key, value in state["recipe"].items())
    return f"""# {recipe.name}

Enlarges RGB pictures {shape.scale} times.
Made by this project; licence as the repository's (Apache-2.0), commercial use: yes.

- file: {path.name}, {len(content)} bytes, sha256 {hashlib.sha256(content).hexdigest()}
- shape: {shape.arch}, {shape.activation}, {shape.channels} channels, {shape.blocks} blocks, 16-bit floats
- condition: {f"{CONDITIONS[shape.inputs]} (training/README.md)" if shape.conditioned else "none"}
- sees {receptive_radius(shape)} input pixels to each side
- trained {state["step"]} of {recipe.steps} steps in {state["seconds"] / 60:.0f} minutes of wall clock
- code at commit {commit}
- golden pair: {recipe.name}.golden.safetensors, an input made by formula and {golden} in double precision

## Figures
Bicubic benchmark, 8 bits, Y, border shaved by the scale (`training/upscale_training/evaluate.py`).

{figures}

Published, Set5 PSNR-Y at {shape.scale}x: {PUBLISHED[shape.scale]}.

## Data
{len(pictures)} clean pictures: {listed(kinds)}. Their licences: {listed(licences)}.
{recipe.pages} pages drawn by code (`rendered.py`), {recipe.page_share:.0%} of the patches.
{RESTORING if recipe.scenes else DAMAGE if recipe.damaged else CLEAN_ONLY}{TAUGHT.get(state.get("run"), "")}
Started from {state["started_from"]}.

## Recipe
{"Muon for the inner convolutions, Adam for the rest" if recipe.muon else "Adam"}, {SCHEDULES[recipe.constant]},
{"the logarithm of each patch's square error" if recipe.psnr_share == 1.0 else "Charbonnier and at the end L2"};
the weights are the moving average.

{settings}
"""


def listed(counts: Counter) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def receptive_radius(shape: Architecture) -> int:
    """3x3 convolutions in a row, one pixel each: head, three a block, tail, up."""
    return 3 * shape.blocks + 3


def current_commit() -> str:
    return subprocess.check_output(["git", "rev-parse", "--short=12", "HEAD"], text=True).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="the training folder, for its attribution file")
    parser.add_argument("--eval", type=Path, nargs="*", default=[], help="folders for the card's table")
    parser.add_argument("--start", type=Path, help="weights to mix in, those that training started from")
    parser.add_argument("--mixed-into", type=Path, help="weights of whose looks these are: their condition is left out")
    parser.add_argument("--share", type=float, default=1.0, help="of the trained weights, where --start is given")
    parser.add_argument("--name", default="", help="of the files; the recipe's where none is given")
    arguments = parser.parse_args()
    commit = current_commit()
    mixing = arguments.start, arguments.share, arguments.mixed_into
    path, recipe, state = export(arguments.checkpoint, arguments.out, commit, *mixing, arguments.name)
    figures = table(arguments.eval, [path]) if arguments.eval else "Not measured at this export."
    text = card(path, recipe, state, arguments.data, commit, figures, arguments.mixed_into)
    (arguments.out / f"{recipe.name}.md").write_text(text, encoding="utf-8")
    print(figures)


if __name__ == "__main__":
    main()
