"""Options that every command has, before or after its name: where settings, data and the user's code lie.

They become settings of this process and of every process that it starts.
"""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast import extras

# Commands that would find out too late what is not installed: in a process that they start, or in mid-work.
NEEDS = {
    "api": ("server",),
    "index": ("server",),
    "mcp": ("mcp",),
    "search": ("server",),
    "up": ("server",),
    "worker": ("server",),
}


def _choose(parameter: typer.CallbackParam, value: str | None) -> str | None:
    """The setting is made absolute, for a child may be started in another folder."""
    if value is not None and parameter.name is not None:
        from holdfast import settings  # noqa: PLC0415 - only who uses an option waits for pydantic

        folders = value.split(os.pathsep) if parameter.name == "python_path" else [value]
        absolute = os.pathsep.join(str(Path(each).expanduser().absolute()) for each in folders)
        settings.choose(**{parameter.name: absolute})
    return value


def _options(
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            callback=_choose,
            expose_value=False,
            help="Settings file; it may then contain every setting.",
        ),
    ] = None,
    data_dir: Annotated[
        str | None,
        typer.Option(
            "--data-dir",
            metavar="FOLDER",
            callback=_choose,
            expose_value=False,
            help="Data folder. Default: ~/.local/share/holdfast.",
        ),
    ] = None,
    python_path: Annotated[
        str | None,
        typer.Option(
            "--python-path",
            metavar="FOLDERS",
            callback=_choose,
            expose_value=False,
            help="Folders with your own Python modules, separated as in PATH.",
        ),
    ] = None,
) -> None:
    """Hold the options: the command that Typer makes of this is never run."""


def program(app: typer.Typer) -> Any:
    """The program of `app`, of which every command takes the shared options as well."""
    root = typer.main.get_command(app)
    _add(root, _shared_options(), ())
    return root


def completed(command: Any, name: str, group: Any) -> Any:
    """A command that is made later than the program, with the shared options if its group has them."""
    known = {option.name for option in group.params}
    _add(command, [option for option in _shared_options() if option.name in known], (name,))
    return command


def _shared_options() -> list[Any]:
    holder = typer.Typer(add_completion=False)
    holder.command()(_options)
    options: list[Any] = typer.main.get_command(holder).params
    return options


def _add(command: Any, options: list[Any], path: tuple[str, ...]) -> None:
    command.params.extend(options)
    for name, each in getattr(command, "commands", {}).items():
        _add(each, options, (*path, name))
    if not hasattr(command, "commands"):
        command.callback = naming_extras(command.callback, " ".join(path))


def naming_extras(callback: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same command, which tells in one line that an extra is missing."""

    @functools.wraps(callback)
    def command(*args: Any, **options: Any) -> Any:
        what = f"holdfast {name}"
        extras.require(NEEDS.get(name, ()), what)
        try:
            return callback(*args, **options)
        except ModuleNotFoundError as error:
            if (extra := extras.extra_of(error)) is None:
                raise
            raise extras.MissingExtraError(extra, what) from error
        except extras.MissingExtraError as error:
            raise extras.MissingExtraError(error.extra, what) from error

    return command
