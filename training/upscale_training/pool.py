"""Scenes in large numbers, for a GPU: made there beside the steps, held in 8 bits and cut into many patches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from . import degrade
from .mixture import Group
from .scenes import Seen

Make = Callable[[np.random.Generator], tuple[Seen, Tensor]]


class Pool:
    """The newest `room` scenes that `make` made, with the condition of each; the oldest give way."""

    def __init__(self, make: Make, room: int, device: str) -> None:
        self.make, self.room, self.device = make, room, torch.device(device)
        self.small: Tensor | None = None
        self.put_so_far, self.turn = 0, -1
        self.stream = torch.cuda.Stream(priority=-1) if self.device.type == "cuda" else None

    def refresh(self, draw: np.random.Generator, turn: int) -> None:
        """Puts the new scenes of a `turn` in; the first time, until all places are taken."""
        self.turn = turn
        self.put(*self.made(draw))
        while self.put_so_far < self.room:
            self.put(*self.made(draw))

    def cut(self, count: int, side: int, seed: int) -> Group:
        """`count` patches of `side` pixels, each under its own condition. By `seed`; on a GPU by its own generator,
        whose draws a recorded step repeats with other numbers."""
        source = None if self.stream else torch.Generator().manual_seed(seed)
        room, scale = self.small.shape[-1] - side + 1, self.clean.shape[-1] // self.small.shape[-1]
        at, top, left = (
            torch.randint(most, (count,), generator=source, device=self.device) for most in (self.room, room, room)
        )
        small = degrade.cut(self.small[at], top, left, side)
        clean = degrade.cut(self.clean[at], top * scale, left * scale, side * scale)
        return Group(small.float() / 255.0, clean.float() / 255.0, self.numbers[at])

    def made(self, draw: np.random.Generator) -> tuple[Tensor, ...]:
        """Scenes, their originals and conditions, by a stream of their own: making them waits for the GPU a dozen
        times, and would wait for all the steps under way."""
        if self.stream is None:
            return self.in_bytes(draw)
        with torch.cuda.stream(self.stream):
            made = self.in_bytes(draw)
        here = torch.cuda.current_stream()
        here.wait_stream(self.stream)
        for one in made:
            one.record_stream(here)
        return made

    def in_bytes(self, draw: np.random.Generator) -> tuple[Tensor, ...]:
        shot, numbers = self.make(draw)
        return *((one * 255.0).round().to(torch.uint8) for one in (shot.small, shot.clean)), numbers

    def put(self, small: Tensor, clean: Tensor, numbers: Tensor) -> None:
        if self.small is None:
            self.small, self.clean, self.numbers = (
                one.new_empty((self.room, *one.shape[1:])) for one in (small, clean, numbers)
            )
        places = (torch.arange(len(small), device=self.device) + self.put_so_far) % self.room
        self.small[places], self.clean[places], self.numbers[places] = small, clean, numbers
        self.put_so_far += len(small)
