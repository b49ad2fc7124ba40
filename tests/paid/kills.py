"""A program that forks callers of an LLM client and lets each die at a fault point, until all have asked.

    python -m tests.paid.kills DATABASE METER SDK KEYED KILLS

Its last line is JSON: how often a caller died at each point. Callers are forked from one process that has
imported everything and opened nothing, so that hundreds of deaths take a minute.
"""

import itertools
import json
import os
import signal
import sys
import tempfile
import threading
from collections import Counter

from holdfast import Guard, faults
from tests.paid import sdks

# On the way of a call that nobody has asked for before.
FIRST = (
    "keep.commit",
    "keep.committed",
    "intend.commit",
    "intend.committed",
    "send.commit",
    "send.committed",
    "send.first_byte",
    "send.begun",
    "send.answered",
    "send.heard",
    "settle.commit",
    "settle.committed",
)
# On the way of one whose sender has died with it in flight.
SECOND = ("recover.commit", "recover.committed", "resend.commit", "resend.committed")
IN_FLIGHT = "send.answered"


class Served:
    """Where the meter is; all that a client needs of it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.base_url = f"{url}/v1"


def plans(streams: bool) -> list[tuple[str, ...]]:
    """The deaths of the callers of one prompt, one after the other; the last caller lives."""
    first = (*FIRST, "send.piece") if streams else FIRST
    return [*((point,) for point in first), *((IN_FLIGHT, point) for point in SECOND)]


class Nursery:
    """Forks callers and counts how they die."""

    def __init__(self, database: str, meter: str, sdk: str, *, keyed: bool) -> None:
        self._database = database
        self._meter = Served(meter)
        self._sdk = next(each for each in sdks.ALL if each.name == sdk)
        self._keyed = keyed
        self.died: Counter[str] = Counter()

    def deaths(self, kills: int) -> None:
        """So many callers have died, and every prompt was answered in the end."""
        chances = itertools.cycle(plans(self._sdk.name.endswith("stream")))
        unanswered: list[str] = []
        number = 0
        while self.died.total() < kills:
            number += 1
            for point in next(chances):
                # The first order of a process also makes it known: who is to die there asks nothing before.
                if unanswered and not point.startswith("keep") and point not in SECOND:
                    self._caller([*unanswered, f"prompt {number}"], point)
                    unanswered = []
                else:
                    self._caller([f"prompt {number}"], point)
            unanswered.append(f"prompt {number}")
        self._caller(unanswered, None)

    def _caller(self, prompts: list[str], point: str | None) -> None:
        """A caller asks all prompts and dies at the point on the way of the last."""
        pid = os.fork()
        if pid == 0:
            self._ask(prompts, point)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            assert os.WTERMSIG(status) == signal.SIGKILL
            self.died[str(point)] += 1
        else:
            assert status == 0, f"a caller that was to live, or to die at {point}, ended with {status}"

    def _ask(self, prompts: list[str], point: str | None) -> None:
        def die(name: str) -> None:
            if name == point:
                os.kill(os.getpid(), signal.SIGKILL)

        guard = Guard(database=self._database, sweep=False)
        for prompt in prompts:
            if prompt == prompts[-1]:
                faults.arm(die)
            answer = self._answer(guard, prompt)
            if not answer.endswith(f"to: {prompt}"):
                os._exit(1)
        os._exit(0)

    def warm_up(self) -> None:
        """Everything is imported and nothing is open: what callers have to do first takes long."""
        with tempfile.TemporaryDirectory() as folder:
            guard = Guard(database=f"sqlite:///{folder}/unused.db", sweep=False)
            self._answer(guard, "nothing")
            guard.close()
        assert threading.active_count() == 1

    def _answer(self, guard: Guard, prompt: str) -> str:
        with guard.scope("kills"):
            return self._sdk.ask(guard, self._meter, prompt, honours_keys=self._keyed)


def main(database: str, meter: str, sdk: str, keyed: str, kills: str) -> None:
    """The callers have died."""
    nursery = Nursery(database, meter, sdk, keyed=keyed == "keyed")
    nursery.warm_up()
    nursery.deaths(int(kills))
    print(json.dumps(nursery.died))


if __name__ == "__main__":
    main(*sys.argv[1:])
