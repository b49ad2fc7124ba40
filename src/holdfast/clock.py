"""The clock that deadlines and signs of life are counted by."""

import time

# Counts time spent suspended, which CLOCK_MONOTONIC on Linux does not. macOS has no CLOCK_BOOTTIME, but its
# monotonic clock does count sleep.
_BOOT_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_time() -> float:
    """Return seconds since boot, suspended time included."""
    return time.clock_gettime(_BOOT_CLOCK)
