"""Text of others on a terminal: it is shown, and commands nothing."""

import json

import pytest
from rich.table import Table

from holdfast.cli import terminal

EVIL = "\x1b[2J\x1b]0;owned\x07 \x9b31m a\rb \u202egpj.exe \udc80"
COMMANDS = ("\x1b", "\x07", "\x9b", "\r", "\u202e", "\udc80")


@pytest.fixture
def shown(capsys):
    """What was written to standard output and standard error since."""
    return lambda: "".join(capsys.readouterr())


def test_whatever_a_console_shows_commands_nothing(shown):
    """As a line, with markup, in a table, in a styled text: written out, beside what is harmless."""
    console = terminal.console()
    table = Table()
    table.add_column("title")
    table.add_row(*terminal.cells(EVIL))
    for each in (EVIL, table):
        console.print(each, style="head", markup=False)
    text = shown()
    assert not [each for each in COMMANDS if each in text]
    assert "\\x1b" in text
    assert "gpj.exe" in text


@pytest.mark.parametrize("show", [terminal.say, lambda text: terminal.complain(text, "bad")])
def test_plain_lines_command_nothing_either(shown, show):
    """Answers and complaints name what others have named."""
    show(EVIL)
    text = shown()
    assert "\\x1b" in text
    assert not [each for each in COMMANDS if each in text]


def test_json_keeps_every_character_and_shows_none_that_commands(shown):
    """It is read back as it was."""
    terminal.show_json({"title": EVIL, "plain": "naïve 文件 👍\u200d"})
    text = shown()
    assert not [each for each in COMMANDS if each in text]
    assert json.loads(text) == {"title": EVIL, "plain": "naïve 文件 👍\u200d"}
    assert "naïve 文件" in text
