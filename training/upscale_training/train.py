"""Trains one network from a config file, resumable at any step: `python -m upscale_training.train CONFIG`.

What a batch holds is data.py's; what the finished weights are worth is evaluate.py's.
"""

from __future__ import annotations

import argparse
import copy
import ctypes
import hashlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import NoReturn
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, distributed, nn

from .data import Pictures
from .estimate import load_estimator
from .grow import grow
from .mixture import Group, Mixture, clean_group, damaged_group
from .muon import Muon
from .network import Network, Plain
from .pool import Pool
from .recipe import Recipe, read_recipe
from .recorded import Recorded
from .scenes import Scenes, Seen, scene_groups, sides, told_scenes
from .spectrum import comb, standing_out
from .weights import load_weights
from .winograd import Winograd

SCENES = Scenes()
# What networks for clean pictures and JPEGs see, which hear nothing of noise and softness.
FILES = Scenes(clean=0.5, file=0.5)
# Of glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
# The groups of a step: who draws each, and of how many patches.
Plan = list[tuple[Callable[..., Group], int]]


class Run:
    """The state of one training: network, its moving average, the optimisers, the next step."""

    shares = Mixture()
    scenes = SCENES
    # Whether a GPU may repeat the first step's kernels: nothing in it depends on the step's number.
    recordable = True

    def __init__(self, recipe: Recipe, device: str, compiled: bool = False) -> None:
        torch.manual_seed(recipe.seed)
        self.recipe, self.device, self.step, self.seconds = recipe, device, 0, 0.0
        # Which share of the recipe's rate is taken: a slice that cools down lets it fall.
        self.share_of_rate = 1.0
        self.network = Network(recipe.architecture())
        self.started_from = described(recipe.start_from)
        if recipe.start_from.endswith(".safetensors"):
            grow(load_weights(Path(recipe.start_from))[0], self.network)
        elif recipe.start_from:
            take_trunk(self.network, Path(recipe.start_from))
        self.network = self.network.to(device, memory_format=torch.channels_last)
        self.average = copy.deepcopy(self.network).requires_grad_(False)
        # The same weights; what is compiled is only how a step is computed. One graph a batch size and precision.
        self.forward = torch.compile(self.network, dynamic=False) if compiled else self.network
        self.optimisers = optimisers(self.network, recipe)
        self.estimator = load_estimator(Path(recipe.estimator)).to(device) if recipe.estimator else None
        if self.scenes is SCENES and not self.estimator:
            self.scenes = FILES
        # A GPU takes all scenes at once, each patch under its own condition, and so does a compiled step (216 ms and
        # not 238 for 12 patches of 40 pixels); else a CPU is faster scene by scene, with the condition folded into the
        # weights (200 ms instead of 230 for 12 patches of 48 pixels).
        self.by_sample = compiled
        self.pools: dict[str, Pool] = {}
        self.recorded: Recorded | None = None

    def step_on(self, pictures: Pictures) -> Tensor:
        """One step; returns the loss."""
        self.set_rate()
        if self.recordable and self.recipe.pool and self.device.startswith("cuda"):
            loss = self.replayed(pictures)
        else:
            loss = self.stepped(pictures)
        self.step += 1
        return loss

    def set_rate(self) -> None:
        rate = max(self.recipe.rate_end, self.recipe.rate(self.step) * self.share_of_rate)
        for group in (group for optimiser in self.optimisers for group in optimiser.param_groups):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def replayed(self, pictures: Pictures) -> Tensor:
        """A step on patches of the scenes that are held, recorded at the first."""
        for seen, name, scenes in self.held(pictures):
            self.refresh(seen, name, scenes)
        if self.recorded is None:
            self.recorded = Recorded(lambda: self.stepped(pictures))
        return self.recorded()

    def held(self, pictures: Pictures) -> list[tuple[Pictures, str, int]]:
        """What a step's patches are cut from: of which pictures, under which name, how many new scenes at a time."""
        return [(pictures, "all", self.recipe.scenes)]

    def stepped(self, pictures: Pictures) -> Tensor:
        for optimiser in self.optimisers:
            optimiser.zero_grad()
        loss = sum(self.gradients(group, share) for group, share in self.groups(pictures))
        loss = summed(self.network, loss)
        nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        for optimiser in self.optimisers:
            optimiser.step()
        self.follow()
        return loss

    def groups(self, pictures: Pictures) -> list[tuple[Group, float]]:
        rank, ranks = team()
        recipe = self.recipe
        if recipe.pool:
            held = self.held(pictures)
            return [(self.pooled(*one, recipe.batch // len(held)), 1.0 / len(held)) for one in held]
        if self.estimator:
            draw, count = np.random.default_rng([recipe.seed, self.step, rank]), recipe.scenes // ranks
            side = recipe.patch_side(self.step)
            found = scene_groups(pictures, draw, count, recipe.crops, side, self.estimator, self.scenes)
            if self.by_sample:
                return [(joined(found), 1.0 / ranks)]
            return [(group, 1.0 / recipe.scenes) for group in found]
        return groups(recipe, self.plan(), pictures, self.step, slice(rank, None, ranks), self.shares)

    def pooled(self, pictures: Pictures, name: str, scenes: int, count: int) -> Group:
        """`count` patches of what is held under `name`."""
        self.refresh(pictures, name, scenes)
        seed = (self.recipe.seed << 32) + self.step
        return self.pools[name].cut(count, self.recipe.patch_side(self.step), seed)

    def refresh(self, pictures: Pictures, name: str, scenes: int) -> None:
        """Every `reuse` steps as many new scenes of `pictures` for what is held under `name`."""
        recipe = self.recipe
        if name not in self.pools:
            side = max(sides(self.scenes))

            def make(draw: np.random.Generator) -> tuple[Seen, Tensor]:
                return told_scenes(pictures, draw, scenes, side, self.estimator, self.scenes)

            self.pools[name] = Pool(make, recipe.pool, self.device)
        turn = self.step // recipe.reuse
        if self.pools[name].turn != turn:
            key = [recipe.seed, self.step, team()[0], crc32(name.encode())]
            self.pools[name].refresh(np.random.default_rng(key), turn)

    def plan(self) -> Plan:
        return [*split(clean_group, self.recipe.batch, self.recipe.clean_groups), *self.damaged_plan()]

    def damaged_plan(self) -> Plan:
        return split(damaged_group, self.recipe.damaged, self.recipe.damaged_groups)

    def gradients(self, group: Group, share: float) -> Tensor:
        """Adds the gradients of one group, weighted by its share of the step; returns its part of the loss."""
        with self.coarsely():
            output = self.forward(group.small, group.condition)
        loss = self.loss(output, group) * share
        loss.backward()
        return loss.detach()

    def coarsely(self) -> torch.autocast:
        """The arithmetic of layers: bfloat16 where the recipe says so; Winograd's have single precision."""
        coarse = self.recipe.bf16(self.step) and self.network.by is Plain
        return torch.autocast(self.device.split(":")[0], torch.bfloat16, enabled=coarse)

    def loss(self, output: Tensor, group: Group) -> Tensor:
        recipe, output = self.recipe, output.float()
        loss = recipe.loss(self.step, output, group.clean)
        if recipe.comb:
            # Every second patch, in turn: of all, spectra took a fifth of a step.
            first = self.step % min(2, len(output))
            seen = (standing_out(picture[first::2]) for picture in (output, group.clean))
            loss = loss + recipe.comb * comb(*seen, recipe.scale).mean()
        return loss

    @torch.no_grad()
    def follow(self) -> None:
        """Moves the average; young averages follow faster, or the zero start would stay in them, but for recorded
        steps, which go on from a finished network."""
        keep = min(self.recipe.ema, 1.0 if self.recipe.pool else (1.0 + self.step) / (10.0 + self.step))
        averages, values = list(self.average.parameters()), list(self.network.parameters())
        torch._foreach_lerp_(averages, values, 1.0 - keep)

    def save(self, path: Path) -> None:
        """Through a neighbour file: a kill at any moment leaves a whole checkpoint."""
        unfinished = path.with_suffix(".unfinished")
        torch.save(self.state(), unfinished)
        unfinished.replace(path)

    def restore(self, path: Path) -> None:
        self.take(torch.load(path, map_location=self.device, weights_only=True))

    def state(self) -> dict:
        """All that a checkpoint holds."""
        return {
            "recipe": asdict(self.recipe),
            "step": self.step,
            "seconds": self.seconds,
            "started_from": self.started_from,
            "run": type(self).__name__,
            "scenes": asdict(self.scenes),
            "network": self.network.state_dict(),
            "average": self.average.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
        }

    def take(self, state: dict) -> None:
        self.network.load_state_dict(state["network"])
        self.average.load_state_dict(state["average"])
        for optimiser, kept in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(kept)
        self.step, self.seconds, self.started_from = state["step"], state["seconds"], state["started_from"]


def joined(groups: list[Group]) -> Group:
    """All patches of the groups in one, each under the condition of its own."""
    conditions = [group.condition.expand(len(group.small), -1) for group in groups]
    small, clean = (torch.cat([getattr(group, name) for group in groups]) for name in ("small", "clean"))
    return Group(small, clean, torch.cat(conditions))


def described(start_from: str) -> str:
    """Which file that was: what comes of this run may replace it."""
    if not start_from:
        return "nothing"
    path = Path(start_from)
    name = f"{path.name}, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return f"{name}, of {load_weights(path)[1]['steps']} steps" if path.suffix == ".safetensors" else name


def split(draw: Callable[..., Group], patches: int, parts: int) -> Plan:
    """`patches` in groups of one condition each."""
    return [(draw, patches // parts)] * parts if patches else []


def groups(
    recipe: Recipe, plan: Plan, pictures: Pictures, step: int, mine: slice, shares: Mixture
) -> list[tuple[Group, float]]:
    """Of the step's groups those that `mine` picks, with their shares of the loss: fixed by seed, step and place."""
    side, whole = recipe.patch_side(step), sum(size for _, size in plan)
    if not plan[mine]:
        raise ValueError(f"a step has {len(plan)} groups: no more processes can share it")
    return [
        (draw(pictures, np.random.default_rng([recipe.seed, step, place]), size, side, shares), size / whole)
        for place, (draw, size) in list(enumerate(plan))[mine]
    ]


def team() -> tuple[int, int]:
    """This process' rank and how many there are: torchrun starts several, each of which computes its groups."""
    return (distributed.get_rank(), distributed.get_world_size()) if distributed.is_initialized() else (0, 1)


def summed(network: Network, loss: Tensor) -> Tensor:
    """Makes the gradients those of the whole team, which all its processes then step by; returns the whole loss."""
    if team()[1] == 1:
        return loss
    parameters = [value for value in network.parameters() if value.grad is not None]
    flat = torch.cat([loss.view(1), *(value.grad.flatten() for value in parameters)])
    distributed.all_reduce(flat)
    sums = flat[1:].split([value.numel() for value in parameters])
    for value, gradient in zip(parameters, sums, strict=True):
        value.grad.copy_(gradient.view_as(value))
    # A copy: a view would keep all of the gradients as long as someone keeps the loss.
    return flat[0].clone()


def optimisers(network: Network, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Adam for everything, or Muon for the convolutions between the first layer and the last."""
    if not recipe.muon:
        return [adam(network.parameters(), recipe.rate_peak)]
    inner = {id(layer.weight) for part in (network.blocks, network.tail, network.fuse) for layer in convolutions(part)}
    chosen = [value for value in network.parameters() if id(value) in inner]
    others = [value for value in network.parameters() if id(value) not in inner]
    return [Muon(chosen, rate_on(chosen, recipe.rate_peak)), adam(others, recipe.rate_peak)]


def adam(values: Iterable[Tensor], rate: float, betas: tuple[float, float] = (0.9, 0.999)) -> torch.optim.Adam:
    """On a GPU with its state and its rate there, as recorded steps need them."""
    values = list(values)
    on_gpu = values[0].is_cuda
    return torch.optim.Adam(values, lr=rate_on(values, rate), betas=betas, fused=on_gpu, capturable=on_gpu)


def rate_on(values: list[Tensor], rate: float) -> float | Tensor:
    return torch.tensor(rate, device=values[0].device) if values[0].is_cuda else rate


def convolutions(part: nn.Module) -> list[nn.Conv2d]:
    return [layer for layer in part.modules() if isinstance(layer, nn.Conv2d)]


def averaged(state: dict) -> Network:
    """The network of a checkpoint, with the averaged weights: the ones that are measured and shipped."""
    network = Network(Recipe(**state["recipe"]).architecture())
    network.load_state_dict(state["average"])
    return network


def take_trunk(network: Network, checkpoint: Path) -> None:
    """Copies every tensor but the last convolution, whose shape depends on the scale."""
    state = torch.load(checkpoint, map_location="cpu", weights_only=True)["average"]
    trunk = {key: value for key, value in state.items() if not key.startswith("up.")}
    missing, unexpected = network.load_state_dict(trunk, strict=False)
    if unexpected or set(missing) != {"up.weight", "up.bias"}:
        raise ValueError(f"{checkpoint} is of another shape: missing {missing}, unexpected {unexpected}")


def train(
    run: Run, pictures: Pictures, checkpoint: Path, stop_at: int, seconds: float = 0.0, cooled: float = 0.0
) -> None:
    """Steps until `stop_at` or for `seconds`, with a checkpoint and a line of log every `checkpoint_seconds`.

    In the last `cooled` share of the seconds the rate falls evenly to its end.
    """
    recipe, started, lately, losses = run.recipe, time.monotonic(), time.monotonic(), []
    before, first = run.seconds, run.step
    stopping = asked_to_stop()
    last = False
    while run.step < stop_at and not last:
        if cooled:
            left = max(0.0, 1.0 - (time.monotonic() - started) / seconds)
            run.share_of_rate = said_by_first(min(1.0, left / cooled))
        losses.append(run.step_on(pictures))
        now = time.monotonic()
        last = any_of_team(stopping.is_set() or 0.0 < seconds <= now - started)
        if now - lately >= recipe.checkpoint_seconds or run.step == stop_at or last:
            run.seconds = before + now - started
            if team()[0] == 0:
                run.save(checkpoint)
                report(run, losses, len(losses) / (now - lately))
            lately, losses = now, []
    print(f"{run.step - first} steps in {run.seconds - before:.0f} s", flush=True)


def report(run: Run, losses: list[Tensor], speed: float) -> None:
    mean, rate = torch.stack(losses).mean().item(), float(run.optimisers[0].param_groups[0]["lr"])
    place = f"step {run.step}/{run.recipe.steps}"
    print(f"{place} loss {mean:.5f} rate {rate:.2e} {speed:.1f} steps/s {run.seconds:.0f} s", flush=True)


def said_by_first(number: float) -> float:
    """The first process' number: at rates of their own clocks, networks of a team would part."""
    if team()[1] == 1:
        return number
    said = torch.tensor(number, dtype=torch.float64)
    distributed.broadcast(said, 0)
    return said.item()


def any_of_team(flag: bool) -> bool:
    """Whether any process says so: all leave after the same step, or one would wait for the other's gradients."""
    if team()[1] == 1:
        return flag
    flags = torch.tensor(float(flag))
    distributed.all_reduce(flags)
    return flags.item() > 0.0


def asked_to_stop() -> threading.Event:
    """Set by SIGTERM or SIGINT: the step under way is finished and saved."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    return stopping


def share(given: str) -> float:
    """Of a command; 600, meant as seconds, once trained for five minutes at the least rate."""
    if not 0.0 <= float(given) <= 1.0:
        raise argparse.ArgumentTypeError(f"{given} is not a share of 0 to 1")
    return float(given)


def options(about: str) -> argparse.ArgumentParser:
    """What every training takes."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("config", type=Path)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="checkpoints and caches")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, default=0, help="0: as many as PyTorch takes")
    parser.add_argument("--compile", action="store_true", help="torch.compile: minutes at the start, then faster steps")
    parser.add_argument("--winograd", action="store_true", help="winograd.cpp: on a CPU without AMX half the time")
    parser.add_argument("--resident", action="store_true", help="as on a GPU: pictures held there, one batch a step")
    parser.add_argument("--minutes", type=float, default=0.0, help="pause after so long: a slice of a borrowed machine")
    parser.add_argument("--cooled", type=share, default=0.0, help="share of --minutes in which the rate falls")
    parser.add_argument("--cool-down", type=int, default=0, help="so many steps to a small rate, into NAME-cooled.pt")
    parser.add_argument("--stop-at", type=int, default=0, help="pause at this step; 0: at the recipe's last")
    return parser


def prepare(arguments: argparse.Namespace) -> Recipe:
    """Threads, arithmetic and team of this process; returns the recipe that it is to follow."""
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    # The momentum of channels that died decays to numbers below 1e-38: multiplying those took a fifth of a step.
    torch.set_flush_denormal(True)
    torch.backends.cudnn.benchmark = True
    keep_memory()
    if "WORLD_SIZE" in os.environ:
        distributed.init_process_group("gloo")
    return read_recipe(arguments.config)


def keep_memory() -> None:
    """Keeps what a step frees for the next: glibc gives large blocks back, and the kernel clears them anew each time.

    Other C libraries have no `mallopt`, or one that does nothing.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def go_on(run: Run, pictures: Pictures, arguments: argparse.Namespace) -> None:
    """Trains from the checkpoint of that name, where there is one."""
    checkpoint = arguments.runs / f"{run.recipe.name}.pt"
    if checkpoint.exists():
        run.restore(checkpoint)
    if arguments.cool_down:
        checkpoint = cooling(run, checkpoint, arguments.cool_down)
    run.by_sample |= pictures.resident
    pictures.page_share = run.recipe.page_share
    if arguments.winograd:
        run.network.by = Winograd
    stop_at, seconds = arguments.stop_at or run.recipe.steps, arguments.minutes * 60.0
    train(run, pictures, checkpoint, stop_at, seconds, arguments.cooled)
    if distributed.is_initialized():
        leave_team()


def train_on_scenes(kind: type[Run], about: str) -> None:
    """The command of a run that cuts its scenes on the CPU."""
    parser = options(about)
    parser.add_argument("--data", type=Path, required=True, help="folder with ATTRIBUTION.tsv and its pictures")
    arguments = parser.parse_args()
    recipe = prepare(arguments)
    pictures = Pictures(arguments.data, arguments.runs / "cache", recipe.scale, recipe.pages, arguments.device)
    go_on(kind(recipe, arguments.device), pictures, arguments)


def leave_team() -> NoReturn:
    """Ends this process when all have come so far and all is written.

    gloo's threads aborted one process in some twenty ("terminate called without an active exception"), at the
    interpreter's end and in `destroy_process_group` alike; the launcher then calls the whole training failed.
    """
    distributed.barrier()
    sys.stdout.flush()
    os._exit(0)


def cooling(run: Run, warm: Path, steps: int) -> Path:
    """Sets `run` to end `steps` after the checkpoint `warm`, which stays; returns where the cooled one goes."""
    cooled = warm.with_name(f"{warm.stem}-cooled.pt")
    begun = run.step
    if cooled.exists():
        begun = int(torch.load(cooled, map_location="cpu", weights_only=True)["recipe"]["cool_from"])
        run.restore(cooled)
    run.recipe = replace(run.recipe, cool_from=begun, steps=begun + steps)
    return cooled


def main(given: list[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with ATTRIBUTION.tsv and its pictures")
    arguments = parser.parse_args(given)
    recipe = prepare(arguments)
    held = arguments.resident or arguments.device.startswith("cuda")
    pictures = Pictures(arguments.data, arguments.runs / "cache", recipe.scale, recipe.pages, arguments.device, held)
    go_on(Run(recipe, arguments.device, arguments.compile), pictures, arguments)


if __name__ == "__main__":
    main()
