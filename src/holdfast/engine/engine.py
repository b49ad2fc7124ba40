"""The verbs for callers: request, again, cancel, delete; work, sweep, drain.

One `Engine` per process. It owns no state: everything it knows is in the database, so any number of engines
may run at once, and any of them may die.
"""

import contextlib
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from holdfast.core import decide
from holdfast.core.errors import BadRequestError, StoreUnavailableError
from holdfast.core.ports import Host
from holdfast.core.records import Ask, Landed, Outcome, RequestResult, Skipped
from holdfast.core.states import LANE_RANK, Disposition, Lane
from holdfast.core.text import is_plain
from holdfast.engine import events, wakeups
from holdfast.engine.events import Done
from holdfast.engine.execute import Executor
from holdfast.engine.host import ThreadHost
from holdfast.engine.kinds import Kind, Registry
from holdfast.engine.sweep import Duty, Sweeper, SweepRules, Swept
from holdfast.engine.watchdog import Watchdog
from holdfast.engine.work import Tools
from holdfast.leases.base import LeaseBackendError, Leases
from holdfast.leases.sql import SqlLeases
from holdfast.ledger.carrier import Carrier
from holdfast.ledger.exchanges import Policy
from holdfast.ledger.pay import Ledger
from holdfast.ledger.prices import DEFAULT, PriceTable
from holdfast.ledger.relay_talk import Relays
from holdfast.providers.base import Provider
from holdfast.store.base.database import Database
from holdfast.store.money import orders
from holdfast.store.protocol import claims, duties, losses, requests
from holdfast.telemetry import traces


@dataclass(frozen=True, slots=True)
class EngineDependencies:
    """What an engine is made of; every part has a default that suits a small script."""

    kinds: Sequence[Kind] = ()
    providers: Mapping[str, Provider] = field(default_factory=dict)
    sender: wakeups.Sender = field(default_factory=wakeups.Nobody)
    host: Host = field(default_factory=ThreadHost)
    leases: Leases | None = None
    prices: PriceTable = DEFAULT
    # The spending limit of a run whose request sets none, in nano-dollars; None: unlimited.
    policy: Policy = field(default_factory=Policy)
    patience: decide.SilenceLimits = field(default_factory=decide.SilenceLimits)
    rules: SweepRules = field(default_factory=SweepRules)
    lock_held_delay: float = 15.0
    lock_held_times: int = 10
    owner: str = ""
    tell: events.Tell = events.nobody
    duties: Sequence[Duty] = ()
    # What carries the orders of this process, if anything does.
    relays: Relays | None = None
    # The parent of this process reports its death; the renewal of leases has its own connection.
    watched: bool = False
    watch: Database | None = None
    # Called with the time until which responses are due, by the host's clock; 0 if none are.
    tell_orders: Callable[[float], None] | None = None


class Engine:
    """The protocol, ready to use in this process."""

    def __init__(self, db: Database, parts: EngineDependencies) -> None:
        self.db = db
        self.parts = parts
        self.registry = Registry(parts.kinds)
        self.host = parts.host
        self.leases = parts.leases or SqlLeases(db)
        self.owner = parts.owner or f"{socket.gethostname()}:{os.getpid()}"
        self.draining = threading.Event()
        self.carrier = Carrier(
            db,
            self.host,
            self.leases.terms,
            name=self.owner,
            watched=parts.watched,
            watch=parts.watch,
            tell=parts.tell_orders,
        )
        self.ledger = Ledger(
            db, self.host, parts.providers, parts.prices, parts.policy, self.carrier, parts.relays
        )
        self.watchdog = Watchdog(
            self.leases,
            self.host,
            lambda work: claims.sign(db, work.claim),
            tell=parts.tell,
            carrier=self.carrier,
            give_up=lambda work: self.wake(losses.overran(db, work.claim, parts.rules.caps)),
        )
        tools = Tools(db, self.host, self.ledger, self.leases.terms, self.draining)
        self.executor = Executor(
            tools,
            self.registry,
            self.leases,
            self.watchdog,
            parts.sender,
            self.owner,
            parts.tell,
            caps=parts.rules.caps,
        )
        judged = orders.OrderRules(
            self.host.has_died, parts.policy.cheap, self.leases.terms.ttl, parts.policy.waits
        )
        self.sweeper = Sweeper(
            db,
            self.host,
            self.leases,
            parts.sender,
            parts.rules,
            parts.duties,
            judged,
            goes_on=self.registry.ends_by_task,
        )

    def request(self, ask: Ask) -> RequestResult:
        """The result of the request; if it created a generation, the workers have been woken."""
        checked = self.checked(ask)
        answer = requests.request(self.db, checked, run_id=self.host.token(), patience=self.parts.patience)
        self.wake_for(checked, answer)
        return answer

    def checked(self, ask: Ask) -> Ask:
        """The request with its pipeline, ready to be sent; BadRequestError if it can never be accepted."""
        kind = self.registry.get(ask.kind)
        if kind is None:
            known = ", ".join(self.registry.names) or "none"
            raise BadRequestError(
                f"kind {ask.kind!r} is not known here; known are: {known}", code="unknown_kind"
            )
        unpriced = ask.pays and self._unpriced(ask)
        complete = replace(ask, pipeline=kind.pipeline, trace=traces.carried(), unpriced=unpriced)
        return _keepable(complete.checked())

    def _unpriced(self, ask: Ask) -> bool:
        """True if the request names a model without a price, of a provider that is set up here."""
        provider, model = ask.options.get("provider"), ask.options.get("model")
        if (
            not isinstance(provider, str)
            or not isinstance(model, str)
            or provider not in self.parts.providers
        ):
            return False
        return self.parts.prices.price(model, provider) is None

    def wake(self, due: Mapping[str, int]) -> None:
        """Announce that so many tasks became due in these lanes."""
        wakeups.wake_lanes(self.parts.sender, due)

    def wake_for(self, ask: Ask, answer: RequestResult) -> None:
        """Announce what the request made due: its own run, and callbacks of a run that it superseded."""
        due = Counter({ask.lane: int(answer.created)}) + Counter({Lane.FOLLOW_UP.value: answer.follow_ups})
        self.wake(due)

    def again(
        self, tenant: str, kind: str, subject: str, *, force: bool = False, actor: str = ""
    ) -> RequestResult:
        """The latest request of the subject, repeated: a retry, or with `force` a new generation.

        Its own `max_cost` applies again.
        """
        last = requests.last_ask(self.db, tenant, kind, subject)
        if last is None:
            return RequestResult(Disposition.REFUSED, "unknown_subject", None, None, 0, None)
        return self.request(replace(last, force=force, actor=actor))

    def cancel(self, head_id: int, *, run_id: str | None = None, actor: str = "") -> Outcome:
        """The live run is cancelled; the published generation stays. Its callback is sent at once."""
        outcome = requests.cancel(self.db, head_id, run_id=run_id, actor=actor)
        if isinstance(outcome, Landed):
            self.wake({Lane.FOLLOW_UP: outcome.follow_ups})
        return outcome

    def delete(self, tenant: str, subject: str, *, actor: str = "") -> list[int]:
        """Nothing of the subject is visible or running any more."""
        deleted = requests.delete(self.db, tenant, subject, actor=actor)
        if deleted:
            self.wake({Lane.FOLLOW_UP: 1})  # a run under way may have had a callback
        return deleted

    def work_off(self, lanes: Sequence[str] = tuple(LANE_RANK), most: int = 100) -> list[Done]:
        """Due tasks were run one after another until none was left, or `most` were done."""
        done: list[Done] = []
        while len(done) < most and (ended := self.executor.run_next(lanes)) is not None:
            done.append(ended)
        return done

    def hand_over(self, reason: str = "hand_over") -> list[Outcome]:
        """Every task held by this process is queued again for others, whatever is in flight for it.

        For a process that must end: its later writes are fenced out, and it sends nothing more. Responses to
        orders in flight are still settled, and the next holder of the task waits for them.
        """
        outcomes = []
        for work in self.watchdog.watched():
            work.lose("the task was handed over")
            outcomes.append(claims.release(self.db, work.claim, reason))
            self.wake({work.claim.lane: 1})
            with contextlib.suppress(LeaseBackendError):  # then it expires by itself
                self.leases.close(work.claim)
        return outcomes

    def deliver(self, task_id: int) -> Done | Skipped:
        """A message that names its task was handled."""
        rules = claims.LockHeld(
            attempt_cap=self.parts.rules.attempt_cap,
            loss_cap=self.parts.rules.loss_cap,
            delay=self.parts.lock_held_delay,
            times=self.parts.lock_held_times,
        )
        return self.executor.run_named(task_id, rules)

    def sweep(self) -> Swept:
        """One round of the sweep."""
        return self.sweeper.sweep()

    def drain(self) -> None:
        """Start nothing new: tasks in progress settle what is in flight and are released."""
        self.draining.set()

    def run_until_idle(self, *, patience: float = 60.0) -> list[Done]:
        """Inline mode: everything that is due, or falls due within `patience` seconds, was done here."""
        done: list[Done] = []
        give_up = self.host.clock() + patience
        with self:
            while not self.draining.is_set():
                ended = self.work_off()
                done += ended
                if ended:
                    continue
                swept = self.sweep()
                if swept.due:
                    continue
                if self.host.clock() > give_up:
                    break
                if not self._something_comes():
                    # What waited may have fallen due since we looked.
                    ended = self.work_off()
                    done += ended
                    if not ended:
                        break
                    continue
                self.host.sleep(min(0.2, self.parts.rules.interval / 4))
        return done

    def _something_comes(self) -> bool:
        try:
            return duties.next_change(self.db) is not None
        except StoreUnavailableError:
            return True

    def __enter__(self) -> Self:
        self.watchdog.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.watchdog.stop()


def _keepable(ask: Ask) -> Ask:
    """This request, if its free texts can be stored; otherwise BadRequestError."""
    free: dict[str, object] = {"content": ask.content, "collection": ask.collection or "", "actor": ask.actor}
    for name, text in free.items():
        if not isinstance(text, str) or not is_plain(text):
            message = f"{name} {text!r:.80} must be text without NUL bytes and lone surrogates"
            raise BadRequestError(message, code=f"bad_{name}")
    return ask
