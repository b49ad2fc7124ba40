"""A scenario in progress: its workers, its requests, its proxies, and the judgement at the end.

A scene owns every process that it starts; leaving it ends them all, however it is left. The provider is
always reached through one proxy, because its address is part of what makes two paid inputs the same; the key
that each worker shows there tells whose exchange is whose.
"""

import contextlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

from holdfast import bootstrap
from holdfast.chaos import evidence, oracle, stacks
from holdfast.chaos.evidence import Evidence
from holdfast.chaos.expectations import expect
from holdfast.chaos.figures import BreachError, Figures
from holdfast.chaos.oracle import Kill, SentRequest
from holdfast.chaos.proxy import Proxy
from holdfast.chaos.stacks import Stack
from holdfast.chaos.waiting import TooLateError, until
from holdfast.chaos.worker_processes import WorkerProcess
from holdfast.core.records import Ask, RequestResult
from holdfast.core.states import ENDED, Status
from holdfast.settings import Settings
from holdfast.testing.meter import Meter
from holdfast.worker import sender as senders

T = TypeVar("T")
ORDER_DEADLINE = 20.0
SHORT_DEADLINE = 5.0
"""For scenes in which orders go unanswered: without keys, each is resent only when it has passed."""
DONE_WITHIN = 90.0
LATENCY = 0.1
_ENDED = [str(status) for status in ENDED]


class Scene:
    """Everybody and everything of one scenario on one stack."""

    def __init__(self, stack: Stack, meter: Meter, rng: random.Random, **changes: object) -> None:
        self.stack, self.meter, self.rng = stack, meter, rng
        self.broker = stack.broker
        self.workers: list[WorkerProcess] = []
        self.requests: list[SentRequest] = []
        self.kills: list[Kill] = []
        self._checks: list[tuple[Callable[[Evidence], Sequence[object]], str]] = []
        with contextlib.ExitStack() as undo:
            self.provider = undo.enter_context(Proxy(*stacks.host_and_port(meter.url)))
            self.environment = _changed(stack.environment() | self._provider(), changes)
            self.settings = settings(self.environment)
            bootstrap.migrated(self.settings)
            meter.plan(latency=LATENCY)
            self.sender = senders.open_sender(self.settings)
            undo.callback(self.sender.close)
            self.runtime = undo.enter_context(bootstrap.open_runtime(self.settings, sender=self.sender))
            self.db = self.runtime.db
            undo.callback(self._clear)
            self._undo = undo.pop_all()

    def _provider(self) -> dict[str, str]:
        retention = {"HOLDFAST_EMBEDDING_KEY_RETENTION": "86400"} if self.meter.honour_keys else {}
        return retention | {
            "HOLDFAST_EMBEDDING_PROVIDER": "openai",
            "HOLDFAST_EMBEDDING_BASE_URL": f"http://127.0.0.1:{self.provider.port}/v1",
            "HOLDFAST_EMBEDDING_API_KEY": "scene",
            "HOLDFAST_ORDER_DEADLINE": str(ORDER_DEADLINE),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def _clear(self) -> None:
        self.meter.release()
        for worker in self.workers:
            worker.clear()

    # ---- workers

    def start(self, name: str = "", *, concurrency: int = 2, **changes: object) -> WorkerProcess:
        """A worker that is starting; `changes` are settings of its own."""
        name = name or f"w{len(self.workers) + 1}"
        environment = _changed(self.environment, {"embedding_api_key": name, **changes})
        worker = WorkerProcess(name, environment, self.stack.folder, concurrency)
        self.workers.append(worker)
        return worker

    def started(self, number: int, **options: Any) -> list[WorkerProcess]:
        """So many workers, all ready."""
        workers = [self.start(**options) for _ in range(number)]
        return [worker.ready() for worker in workers]

    def stop(self, worker: WorkerProcess) -> None:
        """The worker has drained and gone, with exit code 0."""
        worker.terminate()
        code = worker.drained()
        expect(code == 0, f"{worker.name} ended with code {code} after SIGTERM\n{worker.said()}")

    def kill(self, worker: WorkerProcess) -> Kill:
        """The worker is gone, and what it held is on record."""
        open_now = {entry["id"] for entry in self.open_orders(worker)}
        at, since_boot = worker.kill()
        held = {row.id: row.epoch for row in self.held_by(worker)}
        kill = Kill(at, since_boot, worker.name, held, open_now)
        self.kills.append(kill)
        return kill

    def held_by(self, worker: WorkerProcess) -> list[Any]:
        """The tasks that the worker's processes hold."""
        return [row for row in self.rows("tasks", state="running") if worker.owns(row.owner)]

    def clients(self, worker: WorkerProcess) -> set[str]:
        """Host and port of each connection by which the worker talked to the meter."""
        return {
            f"127.0.0.1:{port}" for port, name in list(self.provider.bearers.items()) if name == worker.name
        }

    def open_orders(self, worker: WorkerProcess) -> list[dict[str, Any]]:
        """The exchanges of the worker that are open at the meter."""
        mine = self.clients(worker)
        return [
            entry
            for entry in self.meter.log()
            if entry["client"] in mine
            and entry["inputs"]
            and entry["replied_at"] is None
            and not entry["cut"]
        ]

    def hold_order(
        self,
        worker: WorkerProcess,
        *,
        charged: bool,
        number: int = 1,
        or_done: bool = False,
        seconds: float = 40.0,
    ) -> bool:
        """So many orders of this worker are at the meter and are held there; `meter.release` lets them go.

        False, with `or_done`, when all work has ended instead.
        """

        def held() -> bool:
            # Nobody is held back while this worker has nothing open: it may be waiting for the others' work.
            if len(self.open_orders(worker)) < number:
                self.meter.release()
                return False
            self.meter.hold("after" if charged else "before")
            # What is resent with a key that was charged is never charged again, and held all the same.
            paid = {entry["idempotency_key"] for entry in self.meter.log() if entry["charged"]}
            known = paid if self.meter.honour_keys else set()
            mine = self.open_orders(worker)
            matching = [
                entry
                for entry in mine
                if entry["charged"] == charged or (charged and entry["idempotency_key"] in known)
            ]
            return len(matching) >= number

        what = f"{number} orders of {worker.name} are open at the meter"
        self.wait(lambda: held() or (or_done and not self.unfinished()), seconds, what, every=0.01)
        return held()

    # ---- requests

    def ask(self, subject: str, **fields: Any) -> SentRequest:
        """A request, made and answered."""
        ask = Ask(fields.pop("kind", "paper"), f"document:{subject}", actor="chaos", **fields)
        return self.note(ask, self.runtime.engine.request(ask))

    def note(self, ask: Ask, answer: RequestResult) -> SentRequest:
        """A request that was answered elsewhere."""
        request = SentRequest(ask, answer)
        self.requests.append(request)
        return request

    def papers(self, number: int, *, name: str = "paper", **options: object) -> list[SentRequest]:
        """So many papers with these options were asked for, and accepted."""
        serial = len(self.requests)
        papers = []
        for each in range(number):
            subject = f"{name}-{serial + each}"
            papers.append(self.ask(subject, content=subject, options=options))
            expect(papers[-1].answer.created, f"{subject} was refused: {papers[-1].answer.reason}")
        return papers

    def expect_end(self, request: SentRequest, ends: str, error: str | None = None) -> None:
        """The run of this request must end so."""
        index = self.requests.index(request)
        error = error or (ends if ends in {CANCELLED, SUPERSEDED} else None)
        self.requests[index] = replace(request, ends=ends, error=error)

    # ---- what is on record

    def rows(self, table: str, **where: Any) -> list[Any]:
        """The rows of a table with these values, by their keys."""
        return evidence.rows(self.db, table, **where)

    def claims(self, *, since: float = 0.0, **where: Any) -> list[Any]:
        """The claims on record since then, oldest first."""
        return sorted(
            (row for row in self.rows("journal", verb="claim", **where) if row.at >= since),
            key=lambda row: row.id,
        )

    def unfinished(self) -> list[str]:
        """The runs of this scene that have not ended."""
        status = {row.id: row.status for row in self.rows("runs")}
        return [
            f"{each.ask.subject} is {status.get(each.answer.run_id or '')}"
            for each in self.requests
            if each.answer.created and status.get(each.answer.run_id or "") not in _ENDED
        ]

    def wait(self, true: Callable[[], T], seconds: float, what: str, every: float = 0.05) -> T:
        """The first true answer; the logs of all workers are told when there is none in time."""
        try:
            return until(true, seconds, what, every)
        except TooLateError as error:
            raise TooLateError(f"{error}\n{self.said()}") from None

    def wait_done(
        self, seconds: float = DONE_WITHIN, *, meanwhile: Callable[[], None] = lambda: None
    ) -> None:
        """Every accepted run has ended; `meanwhile` was done again and again until then."""

        def done() -> bool:
            meanwhile()
            return not self.unfinished()

        try:
            until(done, seconds, "every accepted run ends", every=0.2)
        except TooLateError as error:
            raise BreachError(f"lost: {self.unfinished()}\n{error}\n{self.said()}") from None

    def said(self) -> str:
        """The last lines of every worker's log, and the tasks that are open."""
        states = [
            f"task {row.id} of run {row.run_id[:8]}: {row.state}, owner {row.owner}, epoch {row.epoch}, "
            f"attempts {row.attempts}, lease {row.lease_until - time.time():.1f} s, waits {row.waiting_for}"
            for row in self.rows("tasks")
            if row.state in {"queued", "waiting", "running"}
        ]
        return "\n".join([*states[:20], *(worker.said() for worker in self.workers[-4:])])

    def linger(self, least: float, most: float) -> None:
        """A pause of random length, where the timing itself is what is tried out."""
        time.sleep(self.rng.uniform(least, most))

    def after(self, breaches: Callable[[Evidence], Sequence[object]], what: str) -> None:
        """When all is over, this must find nothing in the evidence."""
        self._checks.append((breaches, what))

    # ---- the end

    def judge(
        self, *, exact: bool | None = None, within: float | None = None, notes: Sequence[str] = ()
    ) -> Figures:
        """The figures, when every promise was kept; BreachError otherwise.

        Every worker that still runs is drained first. `exact` says that nothing may be charged twice;
        without it, that is so where the provider honours keys. `within` bounds recovery.
        """
        self.meter.release()
        for worker in self.workers:
            if worker.running:
                self.stop(worker)
        self.provider.cut()
        self.meter.wait_quiet()
        log = self.meter.log()
        gathered = evidence.gather(self.db, log)
        seconds, breaches = oracle.recoveries(gathered, self.kills)
        lost = oracle.lost(gathered, self.requests)
        breaches += lost
        breaches += oracle.wrong(gathered, self.requests)
        breaches += oracle.overcharged(gathered, exact=self.meter.honour_keys if exact is None else exact)
        breaches += oracle.unproven(log, self.kills)
        breaches += oracle.late(seconds, oracle.RECOVERED_WITHIN if within is None else within)
        breaches += oracle.unexplained(gathered, self.requests)
        breaches += oracle.left_over(gathered, self.broker.outstanding())
        breaches += [f"{what}: {list(bad)[:3]}" for check, what in self._checks if (bad := check(gathered))]
        if breaches:
            raise BreachError("\n".join([*breaches, self.said()]))
        taken = oracle.charges(log)
        return Figures(taken.total(), len(taken), len(lost), tuple(seconds), tuple(notes))


def settings(environment: dict[str, str]) -> Settings:
    """The settings that this environment stands for."""
    mine = {name: value for name, value in environment.items() if name.startswith("HOLDFAST_")}
    fields: dict[str, Any] = {name.removeprefix("HOLDFAST_").lower(): value for name, value in mine.items()}
    return Settings(**fields)


def _changed(environment: dict[str, str], changes: dict[str, object]) -> dict[str, str]:
    """The environment with these settings; None takes one away."""
    named = {f"HOLDFAST_{name.upper()}": value for name, value in changes.items()}
    others = {name: value for name, value in environment.items() if name not in named}
    return others | {name: str(value) for name, value in named.items() if value is not None}


SUCCESS, FAILED = str(Status.SUCCESS), str(Status.FAILED)
CANCELLED, SUPERSEDED = str(Status.CANCELLED), str(Status.SUPERSEDED)
