"""`holdfast relay`: the command's part, before the relay takes over."""

from holdfast.bootstrap import relays
from holdfast.cli import context, logs, terminal
from holdfast.relay import run


def relay() -> int:
    """The exit code of a relay that has ended."""
    loaded = context.loaded()
    logs.set_up(loaded)
    with relays.open_relay(loaded) as parts:
        return run.run(parts, lambda path: terminal.announce(f"holdfast relay: {path} ready"))
