"""Makes the pairs of files in `crates/upscale_engine/tests/ncnn`: random networks, converted by ncnn's converter and
run by ncnn itself, in 32 bits. Needs `pip install ncnn pnnx` and is run by hand, when a form is to be added.

    python training/tests/ncnn_pairs.py FOLDER
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import ncnn
import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

import other_networks as nets

SIZE = (8, 12)


class Network(torch.nn.Module):
    """A function of a state dictionary, as a module that can be traced."""

    def __init__(self, state: nets.State, forward: Callable[[nets.State, Tensor], Tensor]) -> None:
        super().__init__()
        self.names = list(state)
        self.run = forward
        for index, tensor in enumerate(state.values()):
            self.register_buffer(f"w{index}", tensor)

    def forward(self, x: Tensor) -> Tensor:
        return self.run({name: getattr(self, f"w{index}") for index, name in enumerate(self.names)}, x)


def networks() -> dict[str, Network]:
    new, old = nets.new_names(2), nets.old_names(1, 1)
    made = {
        "esrgan-x4": (nets.make_rrdb(new, 1, 3, 6, 4), lambda w, x: nets.run_rrdb(w, new, x)),
        "esrgan-x2-squares": (nets.make_rrdb(new, 1, 12, 6, 4), lambda w, x: nets.run_rrdb(w, new, x)),
        "esrgan-x2": (nets.make_rrdb(old, 1, 3, 6, 4), lambda w, x: nets.run_rrdb(w, old, x)),
    }
    for scale in (2, 4):
        span = nets.merged_span(nets.make_span(scale, 4, normed=scale == 2))
        made[f"compact-x{scale}"] = (nets.make_compact(scale, 5), lambda w, x, s=scale: nets.run_compact(w, s, x))
        made[f"span-x{scale}"] = (span, lambda w, x, s=scale: nets.run_span(w, s, x))
    return {name: Network(*made[name]).eval() for name in made}


def run_ncnn(file: Path, x: Tensor) -> Tensor:
    net = ncnn.Net()
    for option in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"):
        setattr(net.opt, option, False)
    assert net.load_param(str(file.with_suffix(".param"))) == 0
    assert net.load_model(str(file.with_suffix(".bin"))) == 0
    with net.create_extractor() as extractor:
        extractor.input("in0", ncnn.Mat(x[0].numpy()).clone())
        status, out = extractor.extract("out0")
    assert status == 0
    return torch.from_numpy(np.array(out))[None]


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    converter = Path(sys.executable).parent / "pnnx"
    x = torch.rand(1, 3, *SIZE, generator=torch.Generator().manual_seed(9))
    for index, (name, network) in enumerate(networks().items()):
        with tempfile.TemporaryDirectory() as place, torch.no_grad():
            torch.jit.trace(network, x).save(f"{place}/m.pt")
            shape = f"inputshape=[1,3,{SIZE[0]},{SIZE[1]}]"
            subprocess.run([converter, "m.pt", shape, f"fp16={index % 2}"], cwd=place, check=True, capture_output=True)
            for ending in ("param", "bin"):
                (folder / f"{name}.{ending}").write_bytes(Path(place, f"m.ncnn.{ending}").read_bytes())
            made, torchs = run_ncnn(folder / name, x).clamp(0, 1), network(x).clamp(0, 1)
        golden = {"input": x, "output": made.contiguous()}
        save_file(golden, folder / f"{name}.golden.safetensors")
        error, spread = (made - torchs).abs().max(), made.std()
        print(f"{name}: fp16={index % 2}, {error:.1e} between ncnn and PyTorch, spread {spread:.3f}")


if __name__ == "__main__":
    main()
