"""How much is measured, and whether the machine is quiet enough for it."""

import time
from dataclasses import dataclass
from pathlib import Path

QUIET = 0.08
_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Counts of one run."""

    jobs: int = 2000
    repeats: int = 5
    history: int = 1_000_000
    queued: int = 100_000
    samples: int = 500
    lookups: int = 50
    wait: float = 20.0


FULL = Sizes()
QUICK = Sizes(jobs=300, repeats=1, history=20_000, queued=5_000, samples=100, lookups=10, wait=0.0)


def busy(seconds: float = 0.5) -> float:
    """The share of all cores that somebody uses now. Call it while we are idle: then it is others."""
    if not _STAT.exists():
        return 0.0
    before = _ticks()
    time.sleep(seconds)
    after = _ticks()
    return (after[0] - before[0]) / max(1, after[1] - before[1])


def quiet(sizes: Sizes) -> float:
    """Wait for a quiet machine, but not for ever; how busy others keep it all the same."""
    begun = time.monotonic()
    while (share := busy()) > QUIET and time.monotonic() - begun < sizes.wait:
        pass
    return share


def _ticks() -> tuple[int, int]:
    found = [int(word) for word in _STAT.read_text().split("\n", 1)[0].split()[1:]]
    return sum(found) - found[3] - found[4], sum(found)
