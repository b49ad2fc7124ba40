"""Clients who upload and ask again without a pause, and remember every answer."""

import threading
import time
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Self

from tests.acceptance.service import Service

FINE = {200, 202, 409, 429, 503}
LONGEST = 30.0
PACE = 0.15


@dataclass(frozen=True)
class Answered:
    """One request: what it was, what it was told, and how long that took."""

    what: str
    status: int
    code: str | None
    seconds: float


class Clients:
    """So many of them; each has texts of its own, so that what was accepted is known by its words."""

    def __init__(self, service: Service, number: int = 3, *, to: str = "load") -> None:
        self.service, self.to = service, to
        self.answers: list[Answered] = []
        self.accepted: dict[str, str] = {}
        self.broken: list[str] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._live, args=(position,)) for position in range(number)]

    def __enter__(self) -> Self:
        self.service.client.collection(self.to)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(2 * LONGEST)

    def _live(self, place: int) -> None:
        step = 0
        while not self._over.is_set():
            step += 1
            text = f"Client {place} has written text number {step}."
            created = self._ask("upload", f"collections/{self.to}/documents", {"text": text, "title": text})
            if created is not None:
                with self._lock:
                    self.accepted[text] = created["document"]["id"]
                self._ask("again", f"documents/{created['document']['id']}/index", {"mode": "retry"})
            self._over.wait(PACE)

    def _ask(self, what: str, path: str, body: dict[str, Any]) -> Any:
        began = time.monotonic()
        try:
            said = self.service.client.post(path, body, may_fail=True)
        except (OSError, HTTPException, AssertionError, ValueError) as error:
            with self._lock:
                self.broken.append(f"{what}: {error!r} after {time.monotonic() - began:.1f} s")
            return None
        code = said.code if said.status >= 400 else None
        with self._lock:
            self.answers.append(Answered(what, said.status, code, time.monotonic() - began))
        return said.json if said.status in {200, 202} and what == "upload" else None

    def count(self, status: int | None = None) -> int:
        """How many answers there were so far, of this status or of any."""
        with self._lock:
            return sum(status in {None, each.status} for each in self.answers)

    def more(self, number: int = 8) -> None:
        """There were so many more answers: a fault, or its end, has been felt."""
        before = self.count()
        self.service.wait(lambda: self.count() >= before + number, f"{number} more answers")

    def judge(self) -> None:
        """Every answer was one that a client can act on, in time; every accepted upload has ended well."""
        assert self.broken == []
        assert [each for each in self.answers if each.status not in FINE] == []
        assert [each for each in self.answers if each.seconds > LONGEST] == []
        assert [each for each in self.answers if each.status == 409 and each.code != "duplicate"] == []
        assert self.accepted
        service = self.service
        for text, document_id in self.accepted.items():
            shown = service.ended(document_id)
            assert shown["index_status"] == "success", shown
            assert service.meter.charges_of(text) >= 1
        assert service.meter.totals().excess == 0
