"""Whether crisper detail may ship.

`python -m upscale_training.detail_gates --general FILE --detail FILE --photos FOLDER --data FOLDER`

Both networks' weights are mixed. Every gate of the design is printed, on photographs never trained on and on drawn
pages, as clean files and as JPEG 75; the exit status is 1 where one fails. NIQE is fitted to the training photographs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from .bed import DAMAGES, Damage, Picture, drawn_sets
from .data import read_attribution, read_picture
from .evaluate import ENDINGS, compare, network_enlarger, read_clean, read_network
from .network import Network
from .niqe import SIDE, Natural, fit

INPUTS = ("clean", "JPEG 75")
LOSS_MAX, TEXT_LOSS_MAX, BETTER_MIN = 0.5, 0.3, 0.75


@torch.no_grad()
def mixed(general: Network, detail: Network, strength: float) -> Network:
    """Weights between the two: 0 is the general network, 1 the other."""
    between = Network(general.architecture)
    pairs = zip(general.state_dict().items(), detail.state_dict().values(), strict=True)
    between.load_state_dict({name: torch.lerp(one, other, strength) for (name, one), other in pairs})
    return between


def photographs(folder: Path) -> Iterator[Picture]:
    for row in read_attribution(folder):
        if row.kind == "photo":
            picture = read_picture(folder / row.file)
            if min(picture.shape[:2]) >= SIDE:
                yield picture


def marks(network: Network, pictures: list[Picture], damage: Damage, natural: Natural | None) -> np.ndarray:
    """[n, 2]: PSNR-Y and, where it is asked for, NIQE."""
    scale, found = network.architecture.scale, []
    for clean in pictures:
        enlarged = network_enlarger(network, damage.true)(damage.make(clean, scale), scale)
        found.append((compare(clean, enlarged, scale)[0], natural.distance(enlarged) if natural else 0.0))
    return np.array(found)


def report(networks: dict[str, Network], photos: list[Picture], text: list[Picture], natural: Natural):
    """The table, and each gate with whether it holds; the first of `networks` is the general one."""
    lines = ["| input | weights | photographs PSNR-Y | NIQE | lower on | text PSNR-Y |", "|---|---|---|---|---|---|"]
    gates, first = [], next(iter(networks))
    for damage in (one for one in DAMAGES if one.name in INPUTS):
        found = {name: marks(network, photos, damage, natural) for name, network in networks.items()}
        pages = {name: marks(network, text, damage, None) for name, network in networks.items()}
        for name, mine in found.items():
            lost = float((found[first] - mine)[:, 0].mean())
            worse = float((pages[first] - pages[name])[:, 0].mean())
            better = float((mine[:, 1] < found[first][:, 1]).mean())
            row = f"{mine[:, 0].mean():.2f} | {mine[:, 1].mean():.2f} | {better:.0%} | {pages[name][:, 0].mean():.2f}"
            lines.append(f"| {damage.name} | {name} | {row} |")
            if name != first:
                at = f"{damage.name}, {name}"
                gates.append((f"{at}: {lost:.2f} dB lost on photographs, at most {LOSS_MAX}", lost <= LOSS_MAX))
                gates.append((f"{at}: NIQE lower on {better:.0%}, at least {BETTER_MIN:.0%}", better >= BETTER_MIN))
                gates.append((f"{at}: {worse:.2f} dB lost on text, at most {TEXT_LOSS_MAX}", worse <= TEXT_LOSS_MAX))
    return lines, gates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--general", type=Path, required=True, help="the weights that ship")
    parser.add_argument("--detail", type=Path, required=True, help="those trained for detail, or their checkpoint")
    parser.add_argument("--photos", type=Path, required=True, help="folder of pictures never trained on")
    parser.add_argument("--data", type=Path, required=True, help="the training pictures, which NIQE is fitted to")
    parser.add_argument("--strength", type=float, default=0.5, help="of the detail weights, 0..1")
    arguments = parser.parse_args()
    general, detail = (read_network(path)[0] for path in (arguments.general, arguments.detail))
    scale = general.architecture.scale
    paths = sorted(path for path in arguments.photos.iterdir() if path.suffix.lower() in ENDINGS)
    photos = [read_clean(path, scale) for path in paths]
    networks = {"general": general, f"detail {arguments.strength:g}": mixed(general, detail, arguments.strength)}
    natural = fit(photographs(arguments.data))
    true = [natural.distance(photo) for photo in photos]
    lines, gates = report(networks, photos, drawn_sets(4)["text"], natural)
    print(f"{len(photos)} photographs at {scale}x; NIQE of the originals {np.mean(true):.2f}", *lines, sep="\n")
    for gate, holds in gates:
        print("holds " if holds else "FAILS ", gate)
    print(json.dumps({"failed": sum(not holds for _, holds in gates), "gates": len(gates)}))
    sys.exit(0 if all(holds for _, holds in gates) else 1)


if __name__ == "__main__":
    main()
