"""`holdfast worker`: the command's part, before the worker takes over."""

import contextlib

from holdfast.cli import context, logs, terminal
from holdfast.cli.exit_codes import CommandError, Exit
from holdfast.core.states import LANE_RANK
from holdfast.settings import Settings
from holdfast.worker import run

MOST_PROCESSES = 512


def worker(
    lanes: str | None, concurrency: int | None, autoscale: str | None, name: str, health_port: int | None
) -> int:
    """The exit code of a worker that has ended."""
    loaded = context.loaded()
    if health_port is not None:
        loaded = loaded.model_copy(update={"health_port": health_port})
    options = run.Options(
        lanes=_lanes(lanes, loaded),
        concurrency=concurrency or loaded.worker_concurrency,
        autoscale=_autoscale(autoscale),
        name=name,
        on_ready=lambda shown: terminal.announce(f"holdfast worker: {shown} ready"),
    )
    logs.set_up(loaded)
    return run.run(loaded, options)


def _lanes(option: str | None, loaded: Settings) -> tuple[str, ...]:
    if option is None:
        return loaded.worker_lanes
    lanes = {lane.strip() for lane in option.split(",") if lane.strip()}
    if not lanes or not lanes <= set(LANE_RANK):
        unknown = ", ".join(sorted(lanes - set(LANE_RANK))) or "none given"
        message = f"--lanes has unknown lanes: {unknown}; choose from {', '.join(LANE_RANK)}"
        raise CommandError(message, Exit.USAGE, code="bad_lane")
    return tuple(lane for lane in LANE_RANK if lane in lanes)


def _autoscale(option: str | None) -> tuple[int, int] | None:
    if option is None:
        return None
    with contextlib.suppress(ValueError):
        most, _, least = option.partition(",")
        pair = int(most), int(least or 1)
        if 1 <= pair[1] <= pair[0] <= MOST_PROCESSES:
            return pair
    raise CommandError(
        f"--autoscale {option!r} should look like 8,2 (most, least), at most {MOST_PROCESSES}",
        Exit.USAGE,
        code="bad_autoscale",
    )
