"""The other processes of a story: real ones, which can be frozen and killed.

They are forked from a server that has imported everything once, so a story may have dozens. Each talks to the
test over a pipe: it says ("at", point) when it stands at the fault point it was given, then waits for a word,
or dies there by SIGKILL without another instruction.
"""

import multiprocessing
import os
import signal
import ssl
import threading
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from holdfast import faults
from holdfast.core.records import Ask, Chunk, Slice
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.kinds import Kind
from holdfast.engine.sweep import SweepRules
from holdfast.leases.base import LeaseTerms
from holdfast.leases.redis import RedisLeases
from holdfast.leases.sql import SqlLeases
from holdfast.ledger.exchanges import Policy
from holdfast.ledger.pay import Call
from holdfast.providers.base import Profile
from holdfast.providers.openai import OpenAIProvider
from holdfast.store.base import dialect
from holdfast.store.features import open_database
from holdfast.testing.prices import PRICES

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.races.actor"])
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the meter speaks plainly; reading certificates takes long
DEADLINE = 20.0
HEARD_WITHIN = (
    60.0  # the first process of a run waits until all is imported; only what has failed takes as long
)
LONG = LeaseTerms(60.0, 20.0, 5.0)
SHORT = LeaseTerms(1.0, 0.3, 0.2)
KILL, WAIT = "kill", "wait"


@dataclass(frozen=True)
class Part:
    """What a process is to do, and at which fault point it stops (the `nth` time it gets there).

    One that is `tireless` works on when nothing is left, until it gets there.
    """

    url: str
    base_url: str = "http://127.0.0.1:9/v1"
    keyed: bool = True
    terms: LeaseTerms = LONG
    deadline: float = 30.0
    at: str = ""
    do: str = KILL
    nth: int = 1
    owner: str = "actor"
    redis_url: str = ""
    ask: Ask | None = None
    tireless: bool = False
    idle_limit: int | None = None
    policy: Policy = field(default_factory=lambda: Policy(poll=0.01, wait=DEADLINE))
    rules: SweepRules = field(default_factory=lambda: SweepRules(interval=0.1, tidy_every=0.1))


def words(work: Any) -> list[str]:
    """The texts that a task pays for: its payload's, or those of the run's options."""
    return list(work.payload.get("words") or work.options.get("words", []))


def cut(work: Any) -> list[Slice]:
    """One slice per list of words in the options; without them the plan task does the work itself."""
    return [Slice({"words": piece}) for piece in work.options.get("slices", [])] or [Slice()]


def read_aloud(work: Any) -> dict[str, int]:
    """Each word is paid for by itself and staged with the length of its vector."""
    expected = words(work)
    for number, word in enumerate(expected):
        vector = work.pay([call(word)])[0]
        work.stage([Chunk(number, f"{work.claim.generation}:{word}:{len(vector)}")])
        work.progress(number + 1, len(expected), unit="words")
    return {"words": len(expected)}


def sum_up(work: Any) -> list[Slice]:
    """Two slices over what the first phase has staged; nothing is left after those."""
    if work.phase > 1:
        return []
    words = [chunk.text.split(":")[1] for chunk in work.earlier_chunks()]
    return [Slice({"words": [f"{len(words)} from {words[0]}"]}), Slice({"words": [f"up to {words[-1]}"]})]


def all_at_once(work: Any) -> dict[str, int]:
    """All words are asked for in one go."""
    vectors = work.pay([call(word) for word in words(work)])
    work.stage([Chunk(n, str(len(vector))) for n, vector in enumerate(vectors)])
    return {"words": len(vectors)}


def call(word: str, model: str = "small") -> Call:
    """One paid input."""
    return Call("meter", "embeddings", model, word)


KINDS = (
    Kind("index", read_aloud, cut),
    Kind("batch", all_at_once, cut),
    Kind("digest", read_aloud, cut, plan_next=sum_up),
)


def engine(part: Part, provider: Any, **parts: Any) -> Engine:
    """An engine with the kinds of these stories."""
    db = open_database(part.url, pool_size=4)
    leases = RedisLeases(part.redis_url, part.terms) if part.redis_url else SqlLeases(db, part.terms)
    values = {"kinds": KINDS, "policy": part.policy, "rules": part.rules, "owner": part.owner} | parts
    return Engine(
        db, EngineDependencies(providers={"meter": provider}, leases=leases, **{"prices": PRICES} | values)
    )


def client(part: Part) -> OpenAIProvider:
    """A client of the meter that the part names."""
    profile = Profile("meter", part.keyed, 86_400.0 if part.keyed else 0.0, 4, 100_000, part.deadline)
    return OpenAIProvider(part.base_url, "meter-key", profile, ssl_context=PLAIN)


class Stop:
    """The handler of the fault points in a process."""

    def __init__(self, part: Part, pipe: Connection) -> None:
        self._part, self._pipe, self._left = part, pipe, part.nth
        self._lock = threading.Lock()

    def __call__(self, point: str) -> None:
        """Stop here if this is the point."""
        if point != self._part.at:
            return
        with self._lock:
            self._left -= 1
            if self._left != 0:
                return
        self._pipe.send(("at", point))
        if self._part.do == KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        self._pipe.recv()


def perform(part: Part, pipe: Connection) -> None:
    """The life of a process: wait for the start, do what the part says, tell what came of it."""
    if part.idle_limit is not None:
        dialect.IDLE_IN_TRANSACTION_MS = part.idle_limit
    with closing(client(part)) as provider:
        actor = engine(part, provider)
        pipe.send(("ready", os.getpid()))
        pipe.recv()
        faults.arm(Stop(part, pipe))
        if part.ask is not None:
            answer = actor.request(part.ask)
            pipe.send(("answer", (answer.disposition.value, answer.generation, answer.run_id)))
        else:
            done = actor.run_until_idle(patience=DEADLINE)
            while part.tireless:
                actor.run_until_idle(patience=DEADLINE)
            pipe.send(("done", [(one.ending.value, one.reason) for one in done]))
        faults.arm(None)
        actor.db.close()


CAST: list["Process"] = []
"""Every process of the running test."""


class Process:
    """A process of the story, as the test holds it."""

    def __init__(self, part: Part) -> None:
        self._pipe, theirs = CONTEXT.Pipe()
        self._process = CONTEXT.Process(target=perform, args=(part, theirs), daemon=True)
        self._process.start()
        CAST.append(self)
        theirs.close()
        self.pid = self._process.pid
        self._ready = False

    def expect(self, word: str) -> Any:
        """What it says with this word, which must be its next."""
        if not self._ready and word != "ready":
            self.ready()
        assert self._pipe.poll(HEARD_WITHIN), f"the process says nothing; {word} was expected"
        said, value = self._pipe.recv()
        assert said == word, f"the process says {said} {value}; {word} was expected"
        return value

    def ready(self) -> "Process":
        """It has connected and waits for the start."""
        self.pid = self.expect("ready")
        self._ready = True
        return self

    def go(self) -> "Process":
        """Let it start, or go on from where it stands."""
        if not self._ready:
            self.ready()
        self._pipe.send("go")
        return self

    @property
    def alive(self) -> bool:
        """True until it has ended, by itself or not."""
        return bool(self._process.is_alive())

    def freeze(self) -> None:
        """Stop every thread of it."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let every thread go on."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Kill -9, and wait until the kernel has cleaned up."""
        os.kill(self.pid, signal.SIGKILL)
        self.dies()

    def clean_up(self) -> None:
        """Whatever it was doing, it is gone; a frozen process would outlive the test."""
        if self._process.is_alive():
            self._process.kill()
            self._process.join(DEADLINE)
        self._pipe.close()

    def dies(self) -> None:
        """It is gone by SIGKILL."""
        self._process.join(DEADLINE)
        assert self._process.exitcode == -signal.SIGKILL, f"it ended with {self._process.exitcode}"

    def ends(self) -> None:
        """It has come to its end by itself."""
        self._process.join(DEADLINE)
        assert self._process.exitcode == 0, f"it ended with {self._process.exitcode}"
