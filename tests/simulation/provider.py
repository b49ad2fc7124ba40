"""A paid service with a life of its own: once it has the first byte it goes on, whoever still listens."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast import faults
from holdfast.providers.base import Answered, Exchange, NotSent, Outcome, Profile, Refused, Unknown
from tests.simulation.world import Actor, Process, World

REJECTED = "rejected"


@dataclass(slots=True)
class Parcel:
    """One exchange as the service sees it."""

    key: str
    tenant: str
    order_id: str
    texts: list[str]
    mood: str
    reader: Actor | None = None
    reply: Outcome | None = None
    charged: bool = False
    over: bool = False


@dataclass(slots=True)
class Served:
    """What the service remembers of an idempotency key."""

    answer: Answered | None = None
    followers: list[Parcel] = field(default_factory=list)


class Service:
    """The far side: charges, answers, and a memory of keys."""

    def __init__(self, world: World, profile: Profile, moods: Mapping[str, float]) -> None:
        self.world = world
        self.profile = profile
        self._moods = dict(moods)
        self._served: dict[str, Served] = {}
        self.charges: Counter[tuple[str, str]] = Counter()
        self.order_charges: Counter[str] = Counter()
        self.heard: list[tuple[Process, str]] = []
        self.open: list[Parcel] = []

    def mood(self) -> str:
        """How this exchange will go."""
        if self.world.calm:
            return "fine"
        draw = self.world.rng.random()
        for mood, share in self._moods.items():
            draw -= share
            if draw < 0:
                if mood != "slow":
                    self.world.faults[f"provider {mood}"] += 1
                return mood
        return "fine"

    def receive(self, key: str, body: bytes, mood: str) -> Parcel:
        """The first byte is here."""
        world = self.world
        order_id, tenant = world.check.order_of(key)
        texts = json.loads(body)["input"]
        parcel = Parcel(key, tenant, order_id, texts, mood)
        self.open.append(parcel)
        if mood == "busy":
            self._later(
                parcel, Refused(429, "rate_limited", "slow down", world.rng.choice((None, 0.5, 4.0)), False)
            )
        elif REJECTED in texts:
            self._later(parcel, Refused(400, "rejected", "this input is not accepted", None, True))
        elif mood == "unavailable":
            uncharged = 503 in self.profile.uncharged
            refused = Refused(503, "unavailable", "down for a moment", None, False)
            self._later(parcel, refused if uncharged else Unknown("503", 503))
        elif mood == "cut_before":
            self._later(parcel, Unknown("connection cut", None))
        else:
            world.after(world.rng.uniform(0.005, 0.3), lambda: self._work(parcel))
        return parcel

    def _work(self, parcel: Parcel) -> None:
        served = self._served.get(parcel.key) if self.profile.honours_keys else None
        if served is not None:
            if served.answer is None:
                served.followers.append(parcel)
            else:
                self._reply(parcel, served.answer, replayed=True)
            return
        if self.profile.honours_keys:
            self._served[parcel.key] = Served()
        self.world.after(self.world.rng.uniform(0.0, 0.2), lambda: self._charge(parcel))

    def _charge(self, parcel: Parcel) -> None:
        parcel.charged = True
        for text in dict.fromkeys(parcel.texts):
            self.charges[parcel.tenant, text] += 1
        self.order_charges[parcel.order_id] += 1
        self.world.note("CHARGED", parcel.order_id[:8], *parcel.texts)
        self.world.check.after_charge(parcel)
        results = tuple(f"{parcel.tenant}|{text}".encode() for text in parcel.texts)
        answer = Answered(results, 3 * len(results), 0, replayed=False)
        if parcel.mood == "error":
            self._later(parcel, Unknown("500", 500))
        elif parcel.mood == "cut_after":
            self._later(parcel, Unknown("connection cut", None))
        else:
            self._reply(parcel, answer, replayed=False)
        if served := self._served.get(parcel.key):
            served.answer = answer
            for follower in served.followers:
                self._reply(follower, answer, replayed=True)

    def _reply(self, parcel: Parcel, answer: Answered, *, replayed: bool) -> None:
        delay = {"slow": 3.0, "stall": self.profile.deadline * 1.4}.get(parcel.mood, 0.05)
        sent = Answered(answer.results, answer.input_tokens, 0, replayed=replayed)
        self._later(parcel, sent, delay * self.world.rng.uniform(0.3, 1.0) + (delay if delay > 3.0 else 0.0))

    def _later(self, parcel: Parcel, reply: Outcome, delay: float = 0.05) -> None:
        self.world.after(delay, lambda: self._arrive(parcel, reply))

    def _arrive(self, parcel: Parcel, reply: Outcome) -> None:
        parcel.over = True
        self.open.remove(parcel)
        parcel.reply = reply
        if parcel.reader is not None:
            reader, parcel.reader = parcel.reader, None
            self.world.wake(reader)


class Line:
    """The near side: what a process has of the service. It follows the phases of the real client."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @property
    def name(self) -> str:
        return self._service.profile.name

    @property
    def profile(self) -> Profile:
        return self._service.profile

    def encode(self, endpoint: str, model: str, params: Mapping[str, object], inputs: Sequence[str]) -> bytes:
        return json.dumps({"endpoint": endpoint, "model": model, "input": list(inputs)}).encode()

    def count_tokens(self, text: str) -> int:
        return 3

    def close(self) -> None:
        """Nothing to close."""

    def send(self, exchange: Exchange, gate: Callable[[], bool]) -> Outcome:
        """Connect, pass the gate, pass the clock, write, listen until the deadline."""
        world = self._service.world
        actor = world.current
        clock = actor.process.clock
        world.step("order: connect")
        mood = self._service.mood()
        if mood == "unreachable":
            return NotSent("connect: refused")
        if clock() >= exchange.send_by:
            return NotSent("too late to connect")
        if not gate():
            return NotSent("gate")
        faults.point("send.first_byte")
        if clock() >= min(exchange.send_by, exchange.deadline):
            return NotSent("too late for the first byte")
        checked_at = world.time
        if world.rng.random() < 0.15:
            world.step("order: byte about to be written")
        world.check.before_byte(actor, exchange.idempotency_key, checked_at)
        world.note("FIRST BYTE", exchange.idempotency_key[3:11])
        parcel = self._service.receive(exchange.idempotency_key, exchange.body, mood)
        faults.point("send.begun")
        reply = self._listen(actor, parcel, exchange.deadline)
        if reply is None:
            return Unknown("deadline", None)
        if isinstance(reply, Answered):
            self._service.heard.append((actor.process, parcel.order_id))
        faults.point("send.answered")
        return reply

    def _listen(self, actor: Actor, parcel: Parcel, deadline: float) -> Outcome | None:
        process: Any = actor.process
        while parcel.reply is None:
            left = (deadline - process.clock()) / process.clock_rate
            if left <= 0:
                return None
            parcel.reader = actor
            try:
                self._service.world.block(left + 0.001)
            finally:
                parcel.reader = None
        return parcel.reply
