"""The `doctor` command and its options."""

import re
from typing import Annotated

import typer

from holdfast.cli.options import Json

_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


def seconds(text: str) -> float:
    """A time like 90, 30m or 2h, in seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d|)", text.strip().lower())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a time; write 90, 30m or 2h")
    return float(match[1]) * _SECONDS[match[2]]


def _time(name: str, help_text: str) -> object:
    return typer.Option(name, parser=seconds, metavar="TIME", help=help_text)


Apps = Annotated[
    list[str] | None,
    typer.Option(
        "--app",
        "-A",
        metavar="MODULE:APP",
        help="Examine this Celery application, as for celery -A. Repeatable.",
    ),
]
Installation = Annotated[
    bool | None,
    typer.Option(
        "--installation/--no-installation",
        help="Examine this installation of Holdfast. Default: without --app.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Fail on warnings, too.")]
Ignored = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="ID", help="Accept the problems of this check. Repeatable."),
]
All = Annotated[bool, typer.Option("--all", help="Show also what passed.")]
Offline = Annotated[bool, typer.Option("--offline", help="Examine settings only, and ask no server.")]
Management = Annotated[
    str | None,
    typer.Option(
        "--management",
        metavar="URL",
        help="RabbitMQ's management interface. Default: port 15672 of the broker.",
    ),
]
LongestTask = Annotated[float | None, _time("--longest-task", "Your longest task, like 90, 30m or 2h.")]
LongestDelay = Annotated[
    float | None, _time("--longest-delay", "Your longest eta, countdown or retry delay.")
]
GracePeriod = Annotated[
    float | None, _time("--grace-period", "How long the orchestrator waits before it kills a worker.")
]
ConsumerTimeout = Annotated[
    float | None, _time("--consumer-timeout", "consumer_timeout of RabbitMQ, if changed; 0: off.")
]
Liveness = Annotated[
    str | None, typer.Option("--liveness", metavar="COMMAND", help="The liveness probe of your workers.")
]
Beats = Annotated[
    int | None, typer.Option("--beats", min=0, metavar="NUMBER", help="How many celery beat run.")
]
Pool = Annotated[str | None, typer.Option("--pool", metavar="NAME", help="The pool of your workers.")]
Supervised = Annotated[
    bool, typer.Option("--supervised", help="Something starts workers again when they end.")
]
AppsOnBroker = Annotated[
    int | None,
    typer.Option(
        "--apps-on-broker", min=1, metavar="NUMBER", help="How many applications use the same Redis database."
    ),
]
MayRepeat = Annotated[
    list[str] | None,
    typer.Option(
        "--may-repeat", metavar="PATTERN", help="Tasks that may run twice, like 'mail.*'. Repeatable."
    ),
]
MayBeLost = Annotated[
    list[str] | None,
    typer.Option("--may-be-lost", metavar="PATTERN", help="Tasks whose loss does no harm. Repeatable."),
]


def register(app: typer.Typer) -> None:
    """The command is one of the program's own."""
    app.command()(doctor)


def doctor(
    celery_app: Apps = None,
    installation: Installation = None,
    strict: Strict = False,
    ignore: Ignored = None,
    show_all: All = False,
    offline: Offline = False,
    management: Management = None,
    longest_task: LongestTask = None,
    longest_delay: LongestDelay = None,
    grace_period: GracePeriod = None,
    consumer_timeout: ConsumerTimeout = None,
    liveness: Liveness = None,
    beats: Beats = None,
    pool: Pool = None,
    supervised: Supervised = False,
    apps_on_broker: AppsOnBroker = None,
    may_repeat: MayRepeat = None,
    may_be_lost: MayBeLost = None,
    as_json: Json = False,
) -> None:
    """Find settings that pay twice or lose work, before they do.

    Examines a Celery application, or this installation, with its broker, database and machine. Reads only;
    prints no secrets. Exit code 1: a problem was found; 4: a server could not be examined.
    """
    from holdfast.cli import doctor_command  # noqa: PLC0415 - so that `holdfast --help` is quick
    from holdfast.doctor.facts import Declared  # noqa: PLC0415

    declared = Declared(
        longest_task=longest_task,
        longest_delay=longest_delay,
        grace_period=grace_period,
        liveness=liveness,
        beats=beats,
        pool=pool,
        consumer_timeout=consumer_timeout,
        supervised=supervised or None,
        apps_on_broker=apps_on_broker,
        may_repeat=tuple(may_repeat or ()),
        may_be_lost=tuple(may_be_lost or ()),
    )
    options = doctor_command.DoctorOptions(
        apps=tuple(celery_app or ()),
        installation=not celery_app if installation is None else installation,
        offline=offline,
        strict=strict,
        ignore=frozenset(part.strip().upper() for each in ignore or () for part in each.split(",") if part),
        management=management,
        declared=declared,
        show_all=show_all,
    )
    raise typer.Exit(doctor_command.doctor(options, as_json=as_json))
