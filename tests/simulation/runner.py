"""One seed from beginning to end: a time of faults, then calm, then the reckoning."""

import gc
import hashlib
import logging
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from holdfast import faults
from tests.simulation import final_checks, scenario
from tests.simulation.clients import Clients
from tests.simulation.fault_injection import FaultInjector
from tests.simulation.oracles import Check
from tests.simulation.processes import Cluster
from tests.simulation.recovery import Recovery
from tests.simulation.storage import Storage
from tests.simulation.world import Process, Violation, World

CALM = 600.0
SHOWN = 60


@dataclass(slots=True)
class Result:
    """What a seed showed."""

    seed: int
    steps: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    points: tuple[str, ...] = ()
    crashes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    dispositions: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    skips: Counter[str] = field(default_factory=Counter)
    recoveries: tuple[tuple[float, float], ...] = ()
    failure: str = ""
    story: str = ""
    fingerprint: str = ""


def run_seed(storage: Storage, seed: int, *, story: bool = False, fingerprint: bool = False) -> Result:
    """Live through one seed; a broken promise is in `failure`, with the end of its story."""
    world = World(scenario.draw(seed))
    check = world.check = Check(world, storage.reader)
    weather = FaultInjector(world)
    storage.begin(world, check, weather)
    town = weather.town = Cluster(world, storage)
    check.service = town.service
    clients = Clients(world, town)
    recovery = check.recovery = Recovery(world, check, town)
    world.pulse = recovery.pulse

    def died(process: Process, why: str) -> None:
        clients.died(process)
        recovery.holder_lost(process)
        town.bereave(process, why)
        town.replace(process)
        if town.relays is not None:
            town.relays.died(process)

    world.on_death, world.on_freeze = died, recovery.holder_lost
    result = Result(seed)
    logging.disable(logging.CRITICAL)
    gc.disable()  # a fifth of the time otherwise; the pauses between seeds are enough
    faults.arm(world.point)
    try:
        _live(world, town, clients, weather, check)
    except Violation as violation:
        result.failure = str(violation)
    except BaseException as error:  # whatever escapes an actor is a finding
        if isinstance(error, KeyboardInterrupt):
            raise
        where = "".join(traceback.format_exception(error)[-6:])
        result.failure = f"unexpected: {type(error).__name__} in {world.problem_in}: {error}\n{where}"
    finally:
        faults.arm(None)
        world.over = True
        world.end()
        storage.finish()
        logging.disable(logging.NOTSET)
        gc.enable()
    _fill(result, world, town, clients, recovery)
    if result.failure or story:
        result.story = tell(world.trace, None if story else SHOWN)
    if fingerprint:
        result.fingerprint = hashlib.blake2b(repr(world.trace).encode(), digest_size=16).hexdigest()
    return result


def _live(world: World, town: Cluster, clients: Clients, weather: FaultInjector, check: Check) -> None:
    if town.relays is not None:
        town.relays.start()
    for position in range(world.scenario.workers):
        town.worker(position)
    world.after(2.0, clients.help)
    moments = [deed.at for deed in world.scenario.deeds] + [fault.at for fault in world.scenario.faults]
    last = max(moments) + 0.1
    known, answer = -1, False

    def done() -> bool:
        nonlocal known, answer
        if check.versions != known:
            known, answer = check.versions, final_checks.quiet(check)
        return answer and world.time > last and clients.pending <= 0 and town.settled()

    world.run(max(last, world.scenario.span) + 5.0, done)
    world.calm = True
    world.note("CALM")
    weather.clear()
    world.disturbed(world.scenario.terms.ttl)
    if not town.living():
        town.worker(0)
    if not world.run(world.time + CALM, done):
        raise Violation(
            "G4", f"not at rest {CALM:.0f} s after the last fault: {final_checks.unfinished(check)}"
        )
    final_checks.reckon(check, town.service)
    final_checks.carried(check, town.service)
    final_checks.requests_kept(check, clients.accepted)
    final_checks.followed_up(check, clients.actions)


def _fill(result: Result, world: World, town: Cluster, clients: Clients, recovery: Recovery) -> None:
    result.steps = world.steps
    result.faults = world.faults
    result.points = tuple(world.points)
    result.crashes = tuple(world.crashed_at)
    result.lost = tuple(world.lost_at)
    result.dispositions = clients.dispositions
    result.endings, result.skips = town.endings, town.skips
    result.recoveries = tuple(recovery.clean)


def tell(trace: list[tuple[Any, ...]], most: int | None) -> str:
    """The trace as lines: time, process, actor, what. Statements are shortened to their first words."""
    lines = []
    for at, process, actor, what, *details in trace:
        words = " ".join(what.split())
        text = words if len(words) < 70 else words[:67] + "..."
        lines.append(
            f"{at:9.3f}  {process:<12} {actor:<10} {text} {' '.join(str(one) for one in details)}".rstrip()
        )
    return "\n".join(lines if most is None else lines[-most:])
