"""Options that every command has, before or after its name: where settings, data and the user's code lie.

They become settings of this process and of every process that it starts.
"""

import os
from pathlib import Path
from typing import Annotated, Any

import typer


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
    holder = typer.Typer(add_completion=False)
    holder.command()(_options)
    root = typer.main.get_command(app)
    _add(root, typer.main.get_command(holder).params)
    return root


def _add(command: Any, options: list[Any]) -> None:
    command.params.extend(options)
    for each in getattr(command, "commands", {}).values():
        _add(each, options)
