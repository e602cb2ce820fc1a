"""One independent random stream for each purpose, so that one seed may serve data and weights alike."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What numbers are drawn for; the values are part of what a seed means."""

    TASKS = 0
    TOKENS = 1
    ROTATION = 2
    WEIGHTS = 3
    FIXED_TASK = 4
    CONTEXT_LABELS = 5


def generator(seed: int, stream: Stream, *part: int) -> np.random.Generator:
    """The generator of one stream or of a numbered part of it; other arguments give independent draws."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(stream), *part)))
