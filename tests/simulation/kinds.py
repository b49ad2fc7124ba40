"""The work of the simulation: what content turns into, so that an oracle can tell whether it is whole."""

import functools
import zlib
from collections.abc import Callable, Sequence

from holdfast.core.errors import MustWaitError
from holdfast.core.records import Chunk, Slice
from holdfast.engine.kinds import Kind
from holdfast.engine.work import Work
from holdfast.ledger.pay import Call
from tests.simulation.scenario import PHASED
from tests.simulation.world import Violation, World

PROVIDER, ENDPOINT, MODEL = "sim", "embeddings", "sim-model"
SHARED_TEXTS = 7
HARD_LIMIT = 16.0


def _draw(*parts: object) -> int:
    return zlib.crc32("|".join(str(part) for part in parts).encode())


def phases_of(content: str) -> list[list[int]]:
    """The ordinals of the slices of each phase of this content; the last number of a phase is followed by
    that of the task that plans the next one, which does a single slice itself.
    """
    count = (2, 2, 3, 4)[_draw("slices", content) % 4] if content.startswith("sliced") else 1
    phases = [list(range(1, count + 1)) if count > 1 else [0]]
    if content.endswith(PHASED):
        for size in ((), (1,), (2,), (2, 1), (1, 3), (3, 2))[_draw("phases", content) % 6]:
            plan = phases[-1][-1] + 1
            phases.append([plan] if size == 1 else list(range(plan + 1, plan + 1 + size)))
    return phases


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


def chunks_of(subject: str, content: str, phases: int | None = None) -> set[tuple[int, int, str]]:
    """Every (slice, position, text) that a reader must see once this content is published.

    With `phases`, what so many first phases have staged.
    """
    return {
        (part, position, f"{subject}|{content}|{part}|{position}")
        for parts in phases_of(content)[:phases]
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
        look_back(work)
        phases = phases_of(work.content)
        return [Slice({"part": part}) for part in phases[work.phase]] if work.phase < len(phases) else []

    def look_back(work: Work) -> None:
        """A later phase sees all that the earlier ones have staged, whoever did it and however often."""
        if work.phase == 0:
            return
        seen = sorted(chunk.text for chunk in work.earlier_chunks())
        staged = sorted(text for _, _, text in chunks_of(work.subject, work.content, work.phase))
        if seen != staged:
            raise Violation("G3", f"phase {work.phase} of {work.subject} saw {seen} of the earlier ones")

    def index(work: Work) -> dict[str, object] | str | None:
        look_back(work)
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
            position = f"{work.subject}|{work.content}|{part}"
            work.stage([Chunk(number, f"{position}|{number}")])
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
    plan_next = plan if "phased" in world.scenario.features else None
    index_kind = Kind("index", run=index, plan=plan, plan_next=plan_next, **limits)
    return [index_kind, Kind("note", run=note, **limits)]
