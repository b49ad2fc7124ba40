"""The command line. `main` is the console entry; each command imports what it needs when it runs."""

from holdfast.cli.app import main

__all__ = ["main"]
