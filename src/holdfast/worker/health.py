"""`/healthz`, `/readyz` and `/metrics` of a worker.

A worker can answer pings and yet consume nothing, so health is *progress*: the sweep runs, child processes
are alive and not stuck, and no work is due that this worker should have taken. `/healthz` says whether a
restart would help; `/readyz` says whether the worker can work right now.
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
from holdfast.worker.supervisor import WorkerSupervisor


@dataclass(frozen=True, slots=True)
class HealthLimits:
    """Seconds without a sign of progress after which a worker counts as faulty."""

    # The sweep may wait for the database as long as one transaction may.
    sweep: float = 60.0
    look: float = 30.0
    start: float = 60.0
    # A process whose task lets no other thread run, not even the one that reports every second.
    sign: float = 30.0

    @classmethod
    def of(cls, lease_ttl: float) -> "HealthLimits":
        """Limits that report a process only after it has certainly lost its lease."""
        return cls(sign=max(5.0, 2.5 * lease_ttl))


class WorkerHealth:
    """Judges a worker by what its supervisor has seen."""

    def __init__(self, supervisor: WorkerSupervisor, patience: HealthLimits | None = None) -> None:
        self._supervisor = supervisor
        self._patience = patience or HealthLimits()

    def faults(self) -> list[str]:
        """Problems that only a restart would fix; empty for a healthy worker."""
        supervisor, now, patience = self._supervisor, boot_time(), self._patience
        progress, rows = supervisor.progress, supervisor.pool_state.taken()
        young = now - progress.began < patience.start
        problems = []
        if not young and now - max(progress.swept, progress.looked) > patience.look:
            problems.append("the threads of the main process are stuck")
        if not young and progress.database and now - progress.swept > patience.sweep:
            problems.append(f"the sweep has not run for {now - progress.swept:.0f} s")
        if not rows and not young and not progress.draining:
            problems.append("there are no processes to run tasks")
        problems += [
            f"process {row.pid} exceeded its hard time limit and was not killed"
            for row in rows
            if 0 < row[Mark.HARD_AT] < now - 3 * supervisor.pace.hard_grace
        ]
        problems += [
            f"process {row.pid} has not reported for {row.silent_for(now):.0f} s"
            f" while running task {row[Mark.TASK]:.0f}"
            for row in rows
            if row.silent_for(now) > patience.sign
        ]
        if progress.deaf:
            problems.append("work is due in its lanes and a process is free, but it takes none")
        return problems

    def hindrances(self) -> list[str]:
        """Reasons why it cannot work right now; empty if it can."""
        progress = self._supervisor.progress
        problems = self.faults()
        if not progress.database:
            problems.append(f"the database does not answer: {progress.error or 'not checked yet'}")
        if not progress.broker:
            problems.append("the broker is not connected")
        rows, now = self._supervisor.pool_state.taken(), boot_time()
        if not rows:
            problems.append("no process has started yet")
        problems += [
            f"process {row.pid} exceeded the hard time limit of task {row[Mark.TASK]:.0f} and will be killed"
            for row in rows
            if 0 < row[Mark.HARD_AT] < now
        ]
        if progress.draining:
            problems.append("the worker is stopping")
        return problems

    def details(self) -> dict[str, Any]:
        """Everything the verdict is based on; times are seconds ago."""
        supervisor, now = self._supervisor, boot_time()
        pool_state, progress = supervisor.pool_state, supervisor.progress

        def ago(at: float) -> float | None:
            return round(now - at, 3) if at else None

        return {
            "worker": {**asdict(supervisor.card)},
            "database": progress.database,
            "broker": progress.broker,
            "draining": progress.draining,
            "up": ago(progress.began),
            "last_sweep": ago(progress.swept),
            "last_wake_up": ago(pool_state.latest(Mark.LAST_WAKE)),
            "last_claim": ago(pool_state.latest(Mark.LAST_CLAIM)),
            "last_renewal": ago(pool_state.latest(Mark.LAST_RENEWAL)),
            "last_end": ago(pool_state.latest(Mark.LAST_END)),
            "claims": pool_state.total(ChildCounter.CLAIMS),
            "renewals": pool_state.total(ChildCounter.RENEWALS),
            "processes": [
                {
                    "pid": row.pid,
                    "task": int(row[Mark.TASK]) or None,
                    "busy_for": ago(row[Mark.BUSY_SINCE]),
                    "last_sign": ago(row[Mark.LAST_SIGN]),
                    "up": ago(row[Mark.UP_AT]),
                }
                for row in pool_state.taken()
            ],
        }

    def collect(self) -> Iterator[Metric]:
        """The same, for Prometheus."""
        supervisor, now = self._supervisor, boot_time()
        pool_state, progress = supervisor.pool_state, supervisor.progress
        for count in ChildCounter:
            yield CounterMetricFamily(
                f"holdfast_worker_{count}", f"{count} of this worker", value=supervisor.total(count)
            )
        ended = CounterMetricFamily("holdfast_worker_tasks", "Claims by how they ended", labels=["ending"])
        for ending in Ending:
            ended.add_metric([ending], pool_state.total(f"ended_{ending}"))
        yield ended
        skipped = CounterMetricFamily(
            "holdfast_worker_skipped", "Deliveries that named their task and were refused", labels=["reason"]
        )
        for reason in Skip:
            skipped.add_metric([reason], pool_state.total(f"skipped_{reason}"))
        yield skipped
        counters = {
            "sweeps": progress.sweeps,
            "sweeps_won": progress.sweeps_won,
            "killed": progress.killed,
            "broker_connections": progress.connections,
            "wake_ups_not_sent": supervisor.wake_ups_not_sent,
        }
        for name, value in counters.items():
            yield CounterMetricFamily(f"holdfast_worker_{name}", f"{name} of this worker", value=value)
        rows = pool_state.taken()
        gauges: dict[str, float] = {
            "processes": len(rows),
            "busy": sum(row.busy for row in rows),
            "broker_connected": progress.broker,
            "database_answers": progress.database,
            "healthy": not self.faults(),
            "ready": not self.hindrances(),
        }
        for mark in (Mark.LAST_WAKE, Mark.LAST_CLAIM, Mark.LAST_RENEWAL, Mark.LAST_END):
            if at := pool_state.latest(mark):
                gauges[f"seconds_since_{mark}"] = now - at
        if progress.swept:
            gauges["seconds_since_last_sweep"] = now - progress.swept
        for name, gauge in gauges.items():
            yield GaugeMetricFamily(f"holdfast_worker_{name}", f"{name} of this worker", value=float(gauge))


class HealthServer:
    """Serves a worker's health on a separate port, from a thread."""

    def __init__(self, host: str, port: int) -> None:
        """Bind at once, so that a port in use is reported before anything else starts. Raises OSError."""
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
        """Start answering."""
        registry = CollectorRegistry()
        registry.register(health)
        self._server.health = health  # type: ignore[attr-defined]
        self._server.registry = registry  # type: ignore[attr-defined]
        self._server.server_activate()
        self._started = True
        threading.Thread(target=self._server.serve_forever, name="holdfast-health", daemon=True).start()

    def stop(self) -> None:
        """Stop answering."""
        if self._started:  # otherwise the library waits for ever for a loop that never started
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
                message = "not found; try /healthz, /readyz or /metrics"
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
        """Probes are not logged."""
