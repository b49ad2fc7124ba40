"""The command line. `main` is the console entry; each command imports what it needs when it runs."""


def main() -> None:
    """Run the command that the arguments of this process name."""
    # Late, so that `__main__` can put the module path right before anything else is imported.
    from holdfast.cli import app  # noqa: PLC0415

    app.main()
