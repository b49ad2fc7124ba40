"""How a command starts another process of Holdfast."""

import sys
from collections.abc import Sequence


def command(words: Sequence[str], module: str = "holdfast.cli") -> list[str]:
    """The command line of a child that runs `module`.

    `-P`: the folder that somebody happens to be in is never looked through for modules.
    """
    return [sys.executable, "-P", "-m", module, *words]
