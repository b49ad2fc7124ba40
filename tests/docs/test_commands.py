"""The page of commands and the command line say the same."""

import re
from pathlib import Path

import typer

from holdfast.cli.app import app
from holdfast.cli.exit_codes import Exit

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/cli.md").read_text()


def commands(group, prefix="holdfast"):
    """Every command line that exists, with its options."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if getattr(command, "commands", None):
            yield from commands(command, f"{prefix} {name}")
        yield (
            f"{prefix} {name}",
            {option for each in command.params for option in each.opts if option[:2] == "--"},
        )


def test_every_command_and_option_is_documented():
    """A command without its row, or an option that its row does not name, is not there yet."""
    rows = re.findall(r"^\| `(holdfast [^`]+)` \|", PAGE, re.MULTILINE)
    for line, options in commands(typer.main.get_command(app)):
        row = next((row for row in rows if re.match(rf"{line}(?! [a-z])", row)), "")
        assert row, line
        missing = {option for option in options if option not in row} - {"--help", "--plain"}
        assert missing == set(), line


def test_every_exit_code_is_documented():
    """The table has the codes of `Exit`, no more and no fewer."""
    assert re.findall(r"^\| `(\d+)` \|", PAGE, re.MULTILINE) == [str(code.value) for code in Exit]
