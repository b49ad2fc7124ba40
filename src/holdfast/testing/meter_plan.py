"""How the meter treats each exchange: by a script first, then by seeded chance."""

from __future__ import annotations

import dataclasses
import random
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Act:
    """The treatment of one exchange: wait, charge or not, wait, then answer, cut or drip.

    `latency` None means the plan's. `body` replaces the answer's body. `drip` is the pause in seconds between
    two bytes of the answer, or between two events of a streamed one, whose connection is cut behind
    `cut_after` events.
    """

    status: int = 200
    charge: bool = True
    latency: float | None = None
    stall_before: float = 0.0
    stall_after: float = 0.0
    cut: bool = False
    drip: float = 0.0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = field(default=None, repr=False)
    cut_after: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Shares (0 to 1, of all exchanges) of each misbehaviour, and their details.

    `script` comes first and is consumed in order: each entry is the name of a misbehaviour, or a mapping
    `{"do": name, "times": n, ...}` whose other entries replace fields of `Act`. Names: answer, rate_limit,
    fail, charge_then_cut, cut_before_charge, stall (before charging), stall_charged (after it), drip.
    """

    latency: float = 0.0
    rate_limit: float = 0.0
    retry_after: float = 1.0
    fail: float = 0.0
    fail_status: int = 500
    fail_charged: bool = False
    charge_then_cut: float = 0.0
    cut_before_charge: float = 0.0
    stall: float = 0.0
    stall_charged: float = 0.0
    stall_seconds: float = 60.0
    drip: float = 0.0
    drip_pause: float = 1.0
    seed: int = 0
    script: tuple[str | Mapping[str, Any], ...] = ()

    def act(self, name: str, changes: Mapping[str, Any] | None = None) -> Act:
        """Return the act named `name` under this plan, with `changes` to its fields."""
        match name:
            case "answer":
                act = Act()
            case "rate_limit":
                act = Act(status=429, charge=False, headers=(("Retry-After", f"{self.retry_after:g}"),))
            case "fail":
                act = Act(status=self.fail_status, charge=self.fail_charged)
            case "charge_then_cut":
                act = Act(cut=True)
            case "cut_before_charge":
                act = Act(cut=True, charge=False)
            case "stall":
                act = Act(stall_before=self.stall_seconds)
            case "stall_charged":
                act = Act(stall_after=self.stall_seconds)
            case "drip":
                act = Act(drip=self.drip_pause)
            case _:
                raise ValueError(f"the meter has no behaviour {name!r}")
        return dataclasses.replace(act, **_fields(changes or {}))


_CHANCES = ("rate_limit", "fail", "charge_then_cut", "cut_before_charge", "stall", "stall_charged", "drip")


class Director:
    """Deals out one act per exchange; thread safe, and repeatable for a seed and an order of arrival."""

    def __init__(self, plan: Plan) -> None:
        self._lock = threading.Lock()
        self._plan = plan
        self._script: list[Act] = []
        self.change(dataclasses.asdict(plan))

    @property
    def plan(self) -> Plan:
        """The plan in force."""
        return self._plan

    def change(self, changes: Mapping[str, Any]) -> Plan:
        """Replace the named fields of the plan; a script replaces what is left of the last one.

        Raises ValueError, with nothing changed, for an invalid name or script.
        """
        try:
            plan = dataclasses.replace(self._plan, **{**changes, "script": tuple(changes.get("script", ()))})
            script = list(_expanded(plan))
        except TypeError as exc:
            raise ValueError(f"not a valid plan of the meter: {exc}") from exc
        with self._lock:
            self._plan = plan
            if "script" in changes:
                self._script = script
            if "seed" in changes:
                self._random = random.Random(plan.seed)  # noqa: S311 (repeatable, not secret)
        return plan

    def next(self) -> Act:
        """Return the act for the next exchange."""
        with self._lock:
            act = self._script.pop(0) if self._script else self._drawn()
            return dataclasses.replace(act, latency=self._plan.latency) if act.latency is None else act

    def _drawn(self) -> Act:
        left = self._random.random()
        for name in _CHANCES:
            left -= getattr(self._plan, name)
            if left < 0:
                return self._plan.act(name)
        return self._plan.act("answer")


def _expanded(plan: Plan) -> Iterable[Act]:
    for entry in plan.script:
        if isinstance(entry, str):
            yield plan.act(entry)
            continue
        changes = {name: value for name, value in entry.items() if name not in {"do", "times"}}
        act = plan.act(entry.get("do", "answer"), changes)
        for _ in range(entry.get("times", 1)):
            yield act


def _fields(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of `Act` from their JSON form: headers as an object, a body as text."""
    fields = dict(changes)
    if isinstance(fields.get("headers"), Mapping):
        fields["headers"] = tuple((str(name), str(value)) for name, value in fields["headers"].items())
    if isinstance(fields.get("body"), str):
        fields["body"] = fields["body"].encode()
    return fields
