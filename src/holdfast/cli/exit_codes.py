"""What a command's exit code means. `docs/reference/cli.md` has the same table, and a test compares them."""

from enum import IntEnum

from holdfast.core.errors import (
    BadRequestError,
    HoldfastError,
    NotFoundError,
    NotReadyError,
    SchemaError,
    StoreUnavailableError,
)
from holdfast.core.states import Disposition

# What a rule or a missing part stands against; nothing is wrong with the command.
REFUSALS = frozenset({"no_content", "quota_exceeded"})


class Exit(IntEnum):
    """The exit codes of every command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    NOT_READY = 4
    NOT_FOUND = 5
    INTERRUPTED = 130


class CommandError(HoldfastError):
    """A command ends here: one line for the person, one code for the script."""

    code = "command_failed"

    def __init__(self, message: str, exit_code: Exit, *, code: str) -> None:
        super().__init__(message, code=code)
        self.exit_code = exit_code


def exit_for(error: HoldfastError) -> Exit:
    """The exit code that tells a script what sort of error this was."""
    if isinstance(error, CommandError):
        return error.exit_code
    if isinstance(error, NotReadyError | SchemaError | StoreUnavailableError):
        return Exit.NOT_READY
    if isinstance(error, NotFoundError):
        return Exit.NOT_FOUND
    if error.code in REFUSALS:
        return Exit.REFUSED
    if isinstance(error, BadRequestError):
        return Exit.USAGE
    return Exit.FAILED


def exit_for_answer(disposition: Disposition) -> Exit:
    """0 when what was asked for is queued or already there; 3 when a run or a rule stands against it."""
    refused = disposition in {Disposition.DUPLICATE, Disposition.REFUSED}
    return Exit.REFUSED if refused else Exit.OK
