"""Where requests wait that wait for somebody else's server.

There are few threads for all other requests, for more of them only get in each other's way. Whoever waited in
one of those for a slow address, or for a provider that embeds a question, would hold up everybody: a handful
of them would stop every request. So they wait in threads of another sort, of which there are many.
"""

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

MOST = 40

_places: RunVar[CapacityLimiter] = RunVar("holdfast.patience")


def places() -> CapacityLimiter:
    """The places of those who wait, of the loop that runs."""
    found = _places.get(None)
    if found is None:
        found = CapacityLimiter(MOST)
        _places.set(found)
    return found
