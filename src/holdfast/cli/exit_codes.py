"""The exit code of a command. `docs/reference/cli.md` says what each means, and a test compares them."""

from holdfast.core.errors import HoldfastError
from holdfast.core.states import Disposition
from holdfast.service.error_table import Exit, row_of

__all__ = ["CommandError", "Exit", "exit_for", "exit_for_answer"]


class CommandError(HoldfastError):
    """A command ends here: one line for the person, one code for the script."""

    code = "command_failed"

    def __init__(self, message: str, exit_code: Exit, *, code: str) -> None:
        super().__init__(message, code=code)
        self.exit_code = exit_code


def exit_for(error: HoldfastError) -> Exit:
    """The exit code that tells a script what kind of error this was."""
    if isinstance(error, CommandError):
        return error.exit_code
    return row_of(error).exit


def exit_for_answer(disposition: Disposition) -> Exit:
    """0 when what was asked for is queued or already there; 3 when a run or a rule stands against it."""
    refused = disposition in {Disposition.DUPLICATE, Disposition.REFUSED}
    return Exit.REFUSED if refused else Exit.OK
