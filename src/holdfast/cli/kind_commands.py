"""`holdfast jobs KIND`: a command for each kind of the registry, with an option for each of its parameters.

Kinds are loaded when one of their commands is called, or their list is asked for, and not before: other
commands stay quick.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from holdfast.cli import global_options
from holdfast.cli.exit_codes import CommandError, Exit
from holdfast.cli.options import Json, MaxCost, Tenant, Yes
from holdfast.core.errors import HoldfastError

TYPES: Mapping[str, type] = {"integer": int, "number": float, "boolean": bool}
# Parameters that every kind has in common are options of their own.
LEFT_OUT = frozenset({"documents"})

Collection = Annotated[
    str | None, typer.Option("--collection", "-c", help="Collection to read. Default: default.")
]
Documents = Annotated[
    list[str] | None,
    typer.Option(
        "--document", help="Only this document. Repeatable; one without --collection is a job of its own."
    ),
]
Mode = Annotated[
    str,
    typer.Option(
        "--mode",
        metavar="retry|replace|force",
        help="If such a job exists: retry refuses while it runs, replace cancels it, force repeats it.",
    ),
]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is done, with a progress bar.")]
WaitForReady = Annotated[
    bool,
    typer.Option(
        "--wait-for-ready", help="Wait for documents that are still being indexed instead of skipping them."
    ),
]
COMMON: Mapping[str, tuple[Any, object]] = {
    "collection": (Collection, None),
    "document": (Documents, None),
    "mode": (Mode, "retry"),
    "wait": (Wait, True),
    "wait_for_ready": (WaitForReady, False),
    "max_cost": (MaxCost, None),
    "yes": (Yes, False),
    "tenant": (Tenant, "default"),
    "as_json": (Json, False),
}


class KindGroup(TyperGroup):
    """The commands that are written down, and one for each kind of the registry."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all of them; those of the kinds are left out where none can be loaded."""
        own = super().list_commands(ctx)
        try:
            return [*own, *(name for name in _kinds() if name not in own)]
        except (HoldfastError, ModuleNotFoundError):
            return own

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command; None where neither it nor such a kind exists."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        kinds = global_options.naming_extras(_kinds, f"jobs {cmd_name}")()
        if cmd_name not in kinds:
            return None
        return global_options.completed(_command(cmd_name, kinds[cmd_name]), f"jobs {cmd_name}", self)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As usual; for a name that is neither a command nor a kind, the error lists what exists."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            known = ", ".join(self.list_commands(ctx))
            raise CommandError(
                f"there is no command and no kind {name!r}; known are: {known}",
                Exit.USAGE,
                code="unknown_kind",
            )
        return super().resolve_command(ctx, args)


def _kinds() -> Mapping[str, Any]:
    from holdfast import bootstrap, settings  # noqa: PLC0415 - see the module's docstring

    return bootstrap.described(settings.load()).jobs


def _command(name: str, spec: Any) -> Any:
    """The command that requests a job of this kind."""
    from holdfast.kinds import parameters  # noqa: PLC0415

    required = parameters.schema(spec).get("required", ())
    fields = {field: form for field, form in parameters.fields(spec).items() if field not in LEFT_OUT}
    # What every command has keeps its name; a parameter that is called the same is given a longer one.
    names = {field: f"param_{field}" if field in COMMON else field for field in fields}
    own = [_parameter(names[field], form, is_required=field in required) for field, form in fields.items()]
    common = [_keyword(field, annotation, default) for field, (annotation, default) in COMMON.items()]

    def run(**values: Any) -> None:
        from holdfast.cli import jobs as doing  # noqa: PLC0415

        params = {
            field: _value(field, values[names[field]], form)
            for field, form in fields.items()
            if values[names[field]] is not None
        }
        order = doing.Wanting(
            name,
            params,
            values["collection"],
            values["document"] or [],
            values["mode"],
            values["tenant"],
            values["yes"],
            values["wait_for_ready"],
            values["max_cost"],
        )
        raise typer.Exit(doing.start(order, wait=values["wait"], as_json=values["as_json"]))

    run.__doc__ = f"{(spec.description or spec.title).rstrip('.')}. Exit code 3 while such a job is running."
    signature = inspect.Signature([*own, *common])
    cast("Any", run).__signature__ = signature
    run.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    return _one(name, run)


def _one(name: str, run: Callable[..., None]) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(run)
    return typer.main.get_command(app)


def _parameter(name: str, form: Mapping[str, Any], *, is_required: bool) -> inspect.Parameter:
    """A required parameter is an argument, any other an option that is not sent where it is left out."""
    form_type = TYPES.get(str(form.get("type")), str)
    sentences = [str(form[key]).rstrip(".") for key in ("title", "description") if form.get(key)]
    if "enum" in form:
        sentences.append(f"One of: {', '.join(map(str, form['enum']))}")
    if is_required:
        sentences += ["A file with JSON, or JSON"] if _is_json(form) else []
        argument = typer.Argument(metavar=name.upper(), help=". ".join([*sentences, ""]).strip())
        return _keyword(name, Annotated[form_type, argument], inspect.Parameter.empty)
    if form.get("default"):
        sentences.append(f"Default: {form['default']}")
    text = ". ".join([*sentences, ""]).strip()
    flag = f"--{name.replace('_', '-')}"
    declared = f"{flag}/--no-{flag[2:]}" if form_type is bool else flag
    return _keyword(name, Annotated[form_type | None, typer.Option(declared, help=text)], None)


def _keyword(name: str, annotation: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _is_json(form: Mapping[str, Any]) -> bool:
    return form.get("type") not in {*TYPES, "string"} and "enum" not in form


def _value(name: str, argument: Any, form: Mapping[str, Any]) -> Any:
    """The value of a parameter: as it is, or read as JSON, from a file where one is named."""
    if not _is_json(form):
        return argument
    text = str(argument)
    try:
        if not text.lstrip().startswith(("{", "[", '"')):
            text = Path(text.removeprefix("@")).read_text(encoding="utf-8")
        return json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        message = f"{name}: {argument} cannot be read as JSON ({error})"
        raise CommandError(message, Exit.USAGE, code="bad_params") from error
