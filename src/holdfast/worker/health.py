"""`/healthz`, `/readyz` and `/metrics` of a worker.

A worker can be connected and consume nothing while a ping is green, so health is *progress*: the sweep goes
round, children are there, show that they live and are not stuck, and no work is due that this worker should
have taken. `/healthz` says whether a restart would help; `/readyz` says whether it can work right now.
"""

import json
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from holdfast.clock import boot_time
from holdfast.core.states import Skip
from holdfast.engine.events import Ending
from holdfast.worker.shared_state import ChildCounter, Mark
from holdfast.worker.supervisor import Overseer


@dataclass(frozen=True, slots=True)
class HealthLimits:
    """For how many seconds a worker may show no sign of something before it counts as a fault."""

    # The sweep may wait for the database for as long as one transaction may.
    sweep: float = 60.0
    look: float = 30.0
    start: float = 60.0
    # A process in the middle of a task that lets no thread run, not even the one that says so every second.
    sign: float = 30.0

    @classmethod
    def of(cls, lease_ttl: float) -> "HealthLimits":
        """So that a process is told of only after it has surely lost its lease."""
        return cls(sign=max(5.0, 2.5 * lease_ttl))


class WorkerHealth:
    """Judges a worker by what its overseer has seen."""

    def __init__(self, overseer: Overseer, patience: HealthLimits | None = None) -> None:
        self._overseer = overseer
        self._patience = patience or HealthLimits()

    def faults(self) -> list[str]:
        """What only a restart would mend; empty for a worker that is alive."""
        overseer, now, patience = self._overseer, boot_time(), self._patience
        progress, rows = overseer.progress, overseer.board.taken()
        young = now - progress.began < patience.start
        found = []
        if not young and now - max(progress.swept, progress.looked) > patience.look:
            found.append("the threads of the main process stand still")
        if not young and progress.database and now - progress.swept > patience.sweep:
            found.append(f"the sweep has not gone round for {now - progress.swept:.0f} s")
        if not rows and not young and not progress.draining:
            found.append("there are no processes to carry out tasks")
        found += [
            f"process {row.pid} is past its hard time limit and was not ended"
            for row in rows
            if 0 < row[Mark.HARD_AT] < now - 3 * overseer.pace.hard_grace
        ]
        found += [
            f"process {row.pid} has shown no sign of life for {row.silent_for(now):.0f} s"
            f" in the middle of task {row[Mark.TASK]:.0f}"
            for row in rows
            if row.silent_for(now) > patience.sign
        ]
        if progress.deaf:
            found.append("work is due in its lanes, it has a free process, and it takes none")
        return found

    def hindrances(self) -> list[str]:
        """Why it cannot work right now; empty when it can."""
        progress = self._overseer.progress
        found = self.faults()
        if not progress.database:
            found.append(f"the database does not answer: {progress.error or 'not asked yet'}")
        if not progress.broker:
            found.append("the broker is not connected")
        rows, now = self._overseer.board.taken(), boot_time()
        if not rows:
            found.append("no process is up yet")
        found += [
            f"process {row.pid} is past its hard time limit with task {row[Mark.TASK]:.0f} and will be ended"
            for row in rows
            if 0 < row[Mark.HARD_AT] < now
        ]
        if progress.draining:
            found.append("it is stopping")
        return found

    def details(self) -> dict[str, Any]:
        """Everything that the judgement rests on; times are seconds ago."""
        overseer, now = self._overseer, boot_time()
        board, progress = overseer.board, overseer.progress

        def ago(at: float) -> float | None:
            return round(now - at, 3) if at else None

        return {
            "worker": {**asdict(overseer.card)},
            "database": progress.database,
            "broker": progress.broker,
            "draining": progress.draining,
            "up": ago(progress.began),
            "last_sweep": ago(progress.swept),
            "last_wake_up": ago(board.latest(Mark.LAST_WAKE)),
            "last_claim": ago(board.latest(Mark.LAST_CLAIM)),
            "last_renewal": ago(board.latest(Mark.LAST_RENEWAL)),
            "last_end": ago(board.latest(Mark.LAST_END)),
            "claims": board.total(ChildCounter.CLAIMS),
            "renewals": board.total(ChildCounter.RENEWALS),
            "processes": [
                {
                    "pid": row.pid,
                    "task": int(row[Mark.TASK]) or None,
                    "busy_for": ago(row[Mark.BUSY_SINCE]),
                    "last_sign": ago(row[Mark.LAST_SIGN]),
                    "up": ago(row[Mark.UP_AT]),
                }
                for row in board.taken()
            ],
        }

    def collect(self) -> Iterator[Metric]:
        """The same, for Prometheus."""
        overseer, now = self._overseer, boot_time()
        board, progress = overseer.board, overseer.progress
        for count in ChildCounter:
            yield CounterMetricFamily(
                f"holdfast_worker_{count}", f"{count} of this worker", value=overseer.total(count)
            )
        ended = CounterMetricFamily("holdfast_worker_tasks", "Claims by how they ended", labels=["ending"])
        for ending in Ending:
            ended.add_metric([ending], board.total(f"ended_{ending}"))
        yield ended
        skipped = CounterMetricFamily(
            "holdfast_worker_skipped", "Deliveries that named their task and were refused", labels=["reason"]
        )
        for reason in Skip:
            skipped.add_metric([reason], board.total(f"skipped_{reason}"))
        yield skipped
        counters = {
            "sweeps": progress.sweeps,
            "sweeps_won": progress.sweeps_won,
            "killed": progress.killed,
            "broker_connections": progress.connections,
            "wake_ups_not_sent": overseer.wake_ups_not_sent,
        }
        for name, value in counters.items():
            yield CounterMetricFamily(f"holdfast_worker_{name}", f"{name} of this worker", value=value)
        rows = board.taken()
        gauges: dict[str, float] = {
            "processes": len(rows),
            "busy": sum(row.busy for row in rows),
            "broker_connected": progress.broker,
            "database_answers": progress.database,
            "healthy": not self.faults(),
            "ready": not self.hindrances(),
        }
        for mark in (Mark.LAST_WAKE, Mark.LAST_CLAIM, Mark.LAST_RENEWAL, Mark.LAST_END):
            if at := board.latest(mark):
                gauges[f"seconds_since_{mark}"] = now - at
        if progress.swept:
            gauges["seconds_since_last_sweep"] = now - progress.swept
        for name, gauge in gauges.items():
            yield GaugeMetricFamily(f"holdfast_worker_{name}", f"{name} of this worker", value=float(gauge))


class HealthServer:
    """Serves a worker's health on a port of its own, from a thread."""

    def __init__(self, host: str, port: int) -> None:
        """Bind at once, so that a taken port is told before anything else starts. Raises OSError."""
        self._server = ThreadingHTTPServer((host, port), _Handler, bind_and_activate=False)
        self._server.daemon_threads = True
        try:
            self._server.server_bind()
        except OSError:
            self._server.server_close()
            raise
        self._started = False
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_address[1]}"

    def start(self, health: WorkerHealth) -> None:
        """Answer from now on."""
        registry = CollectorRegistry()
        registry.register(health)
        self._server.health = health  # type: ignore[attr-defined]
        self._server.registry = registry  # type: ignore[attr-defined]
        self._server.server_activate()
        self._started = True
        threading.Thread(target=self._server.serve_forever, name="holdfast-health", daemon=True).start()

    def stop(self) -> None:
        """Answer no more."""
        if self._started:  # otherwise the library waits for ever for a loop that never was
            self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    timeout = 5
    server_version = "holdfast"
    sys_version = ""

    def do_GET(self) -> None:
        health: WorkerHealth = self.server.health  # type: ignore[attr-defined]
        match self.path.partition("?")[0]:
            case "/healthz":
                self._judge(health, health.faults())
            case "/readyz":
                self._judge(health, health.hindrances())
            case "/metrics":
                text = generate_latest(self.server.registry)  # type: ignore[attr-defined]
                self._answer(200, text, "text/plain; version=0.0.4; charset=utf-8")
            case _:
                message = "ask for /healthz, /readyz or /metrics"
                body = json.dumps({"error": {"code": "not_found", "message": message}}).encode()
                self._answer(404, body, "application/json")

    def _judge(self, health: WorkerHealth, problems: list[str]) -> None:
        body = {"ok": not problems, "problems": problems, **health.details()}
        self._answer(503 if problems else 200, json.dumps(body).encode(), "application/json")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
        """Probes are not news."""
