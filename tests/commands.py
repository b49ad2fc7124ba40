"""Commands of `holdfast`, run in the process of a test."""

import sys
from collections.abc import Callable

import pytest

from holdfast import cli

Command = Callable[..., tuple[int, str, str]]


def caller(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`call("search", "x")` runs a command; answers exit code, output and complaint."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["holdfast", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return call
