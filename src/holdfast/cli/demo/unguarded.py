"""The same incidents without Holdfast: a plain loop, and a broker that delivers again what was not finished.

Measured at a meter of the same sort, not assumed. Each incident is as close to its guarded twin as a loop
allows: the same documents, the same orders of three, the same moment of the kill and of the freeze.
"""

from holdfast.cli.demo import documents
from holdfast.cli.demo.guarded import STALL
from holdfast.cli.demo.narration import IncidentCost
from holdfast.cli.demo.processes import Cast, MeterActor


def run(cast: Cast) -> tuple[list[IncidentCost], dict[str, int]]:
    """The charges of each incident, in the order of the guarded ones, and the totals at the provider."""
    meter = cast.meter("the meter of the plain loop")
    counts = []
    for name, incident, inputs in (
        ("double click", _double_click, documents.PARAGRAPHS),
        ("kill -9 with an order open", _kill, documents.PARAGRAPHS),
        ("freeze, then thaw", _freeze, documents.PARAGRAPHS),
        ("index again, unchanged", _again, 0),
        ("index again, one paragraph changed", _changed, 1),
    ):
        before = meter.totals()["charges"]
        incident(cast, meter)
        counts.append(IncidentCost(name, inputs, meter.totals()["charges"] - before))
    return counts, meter.totals()


def _stored(cast: Cast, title: str) -> str:
    return documents.keep(cast.folder, documents.paragraphs(title))


def _double_click(cast: Cast, meter: MeterActor) -> None:
    document = _stored(cast, "handbook")
    for loop in [cast.plain_loop(f"loop {number}", document, meter) for number in (1, 2)]:
        loop.wait()


def _kill(cast: Cast, meter: MeterActor) -> None:
    document = _stored(cast, "contract")
    meter.stall(after=1, seconds=STALL)
    loop = cast.plain_loop("loop 3", document, meter)
    meter.wait_charged()
    loop.kill()
    cast.plain_loop("loop 4", document, meter).wait()


def _freeze(cast: Cast, meter: MeterActor) -> None:
    document = _stored(cast, "report")
    sleeper = cast.plain_loop("loop 5", document, meter, wait_at=2)
    sleeper.hear("waiting")
    sleeper.freeze()
    sleeper.go_on()
    cast.plain_loop("loop 6", document, meter).wait()
    sleeper.thaw()
    sleeper.wait()


def _again(cast: Cast, meter: MeterActor) -> None:
    cast.plain_loop("loop 7", _stored(cast, "handbook"), meter).wait()


def _changed(cast: Cast, meter: MeterActor) -> None:
    texts = documents.paragraphs("handbook")
    texts[6] = "Paragraph 7 of the handbook: somebody has rewritten it."
    cast.plain_loop("loop 8", documents.keep(cast.folder, texts), meter).wait()
