"""The work of the simulation: what content turns into, so that an oracle can tell whether it is whole."""

import functools
import zlib
from collections.abc import Callable, Sequence

from holdfast.core.errors import MustWaitError
from holdfast.core.records import Chunk, Slice
from holdfast.engine.kinds import Kind
from holdfast.engine.work import Work
from holdfast.ledger.pay import Call
from tests.simulation.world import Violation, World

PROVIDER, ENDPOINT, MODEL = "sim", "embeddings", "sim-model"
SHARED_TEXTS = 7
HARD_LIMIT = 16.0


def _draw(*parts: object) -> int:
    return zlib.crc32("|".join(str(part) for part in parts).encode())


def slices_of(content: str) -> int:
    """How many slices this content is cut into."""
    return (2, 2, 3, 4)[_draw("slices", content) % 4] if content.startswith("sliced") else 1


def texts_of(content: str, part: int) -> list[list[str]]:
    """The paid inputs of a slice, order by order; several slices and documents share some."""
    orders = (1, 1, 2)[_draw("orders", content, part) % 3]
    texts = [
        [
            f"text {_draw(content, part, order, n) % SHARED_TEXTS}"
            for n in range(1 + _draw("calls", content, part, order) % 3)
        ]
        for order in range(orders)
    ]
    if content.startswith("reject"):
        texts[-1].append("rejected")
    return texts


def chunks_of(subject: str, content: str) -> set[tuple[int, int, str]]:
    """Every (slice, position, text) that a reader must see once this content is published."""
    count = slices_of(content)
    parts = range(1, count + 1) if count > 1 else range(1)
    return {
        (part, position, f"{subject}|{content}|{part}|{position}")
        for part in parts
        for position in range(len(texts_of(content, part)))
    }


@functools.cache
def key_of(tenant: str, text: str) -> str:
    """The content key under which `tenant` pays for `text`."""
    return Call(PROVIDER, ENDPOINT, MODEL, text).key(tenant)


def make(world: World, die: Callable[[str], None]) -> list[Kind]:  # noqa: C901 - a kind per function
    """The kinds every simulated process knows."""

    def check(work: Work, text: str, result: bytes) -> None:
        if result != f"{work.claim.tenant}|{text}".encode():
            message = f"{work.claim.tenant} asked for {text!r} and was given {result!r}"
            raise Violation("tenants", message)

    def plan(work: Work) -> Sequence[Slice]:
        world.step("plan")
        count = slices_of(work.content)
        return [Slice({"part": n}) for n in range(1, count + 1)] if count > 1 else [Slice({"part": 0})]

    def index(work: Work) -> dict[str, object] | str | None:
        flavour = work.content.partition(":")[0]
        part = int(work.payload["part"])
        if flavour == "poison":
            world.step("poison")
            die("poison")
        if flavour == "hang":
            hang(work)
        if flavour == "wait" and world.rng.random() < 0.7 and not world.calm:
            raise MustWaitError("not yet", reason="rate", delay=world.rng.uniform(0.1, 3.0))
        orders = texts_of(work.content, part)
        for number, texts in enumerate(orders):
            results = work.pay([Call(PROVIDER, ENDPOINT, MODEL, text) for text in texts])
            for text, result in zip(texts, results, strict=True):
                check(work, text, result)
            place = f"{work.subject}|{work.content}|{part}"
            work.stage([Chunk(number, f"{place}|{number}")])
            work.progress(number + 1, len(orders), unit="orders", line=f"{number + 1} of {len(orders)}")
            if flavour == "raise":
                raise RuntimeError("this content cannot be read")
        return "nonsense" if flavour == "nonsense" else {"orders": len(orders)}

    def hang(work: Work) -> None:
        """Deaf until the supervisor's hard limit ends the whole process."""
        host = work._tools.host
        while host.clock() < work.hard_at + 2.0:
            host.sleep(2.0)
        die("hard time limit")

    def note(work: Work) -> None:
        texts = [f"text {_draw(work.content) % SHARED_TEXTS}"]
        for text, result in zip(
            texts, work.pay([Call(PROVIDER, ENDPOINT, MODEL, t) for t in texts]), strict=True
        ):
            check(work, text, result)

    limits = {"soft_limit": HARD_LIMIT * 10, "hard_limit": HARD_LIMIT * 12}
    hangs = any(deed.content.startswith("hang") for deed in world.scenario.deeds)
    if hangs:
        limits = {"soft_limit": HARD_LIMIT * 2, "hard_limit": HARD_LIMIT}
    return [Kind("index", run=index, plan=plan, **limits), Kind("note", run=note, **limits)]
