"""A training step recorded once as a CUDA graph: hundreds of small kernels are then one call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import torch
from torch import Tensor

# Steps that run before the recording, so that libraries have chosen their kernels and optimisers have their state.
FIRST = 3
# How many steps the processor may be ahead: without a bound it fills the driver's queue and hears of the clock late.
AHEAD = 16


class Recorded:
    """`step` gives the loss of one step on tensors that stay where they are; numbers that it reads from Python stay
    as they were at the recording."""

    def __init__(self, step: Callable[[], Tensor]) -> None:
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(FIRST):
                step()
        torch.cuda.current_stream().wait_stream(beside)
        self.graph, self.running = torch.cuda.CUDAGraph(), deque()
        with torch.cuda.graph(self.graph):
            self.loss = step()

    def __call__(self) -> Tensor:
        self.graph.replay()
        done = torch.cuda.Event()
        done.record()
        self.running.append(done)
        if len(self.running) > AHEAD:
            self.running.popleft().synchronize()
        return self.loss.clone()
