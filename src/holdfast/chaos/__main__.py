"""`python -m holdfast.chaos`: every scenario that needs no server, on the embedded stack."""

import sys

from holdfast.extras import MissingExtraError, require


def main() -> int:
    """The exit code of the harness; 2 without the extras that a worker needs."""
    try:
        require(("celery", "server"), "holdfast.chaos")
    except MissingExtraError as error:
        print(f"{error} [{error.code}]", file=sys.stderr)
        return 2
    from holdfast.chaos import harness, servers, stacks  # noqa: PLC0415 - they need the extras

    return harness.main(servers.Servers(), stack_names=(stacks.EMBEDDED,))


if __name__ == "__main__":
    sys.exit(main())
