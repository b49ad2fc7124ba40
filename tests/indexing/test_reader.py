"""Somebody reads all the while: never a mixture, never a gap, whatever becomes of the next generation."""

import pytest

from holdfast import faults
from holdfast.chaos.waiting import until
from holdfast.core.states import Status
from tests.indexing import books
from tests.indexing.install import WISH, endings
from tests.indexing.reading import Reader

pytestmark = pytest.mark.g3
PAGES = 60


def texts(word, pages=PAGES):
    return [f"This is {word} number{number}x of the plain book." for number in range(1, pages + 1)]


@pytest.fixture
def document(install):
    """A book of five slices, published."""
    return install.indexed(books.plain(PAGES), "book.pdf")


@pytest.fixture
def reader(install, document):
    with Reader(install.url, document.head_id, texts("page")) as reading:
        yield reading
    assert reading.faults == []


def seen(reader, generation, more=3):
    """Return when the reader has looked a few times more, at this generation."""
    already = reader.saw(generation)
    what = f"generation {generation} is not seen"
    until(lambda: reader.faults or reader.saw(generation) >= already + more, 20, what)
    assert reader.faults == []


def test_while_it_is_replaced(install, document, reader):
    """Slice after slice of the new one is done; the old one is seen until the last, then the new one."""
    reader.whole[2] = texts("leaf", 40)
    seen(reader, 1)
    install.put(document.id, books.plain(40, "leaf"))
    while install.document(document.id).published_generation == 1:
        seen(reader, 1, more=1)
        assert install.work(most=1)
    seen(reader, 2)
    install.tidy()
    seen(reader, 2)


def test_while_a_part_of_it_is_taken_over(install, document, reader):
    """Copied rows belong to the new generation, and are pruned with the old one only from the old one."""
    reader.whole[2] = [*texts("page", 24), *(text.replace("page", "leaf") for text in texts("page")[24:])]
    content = books.mixed(PAGES, 24)
    install.put(document.id, content)
    install.work()
    seen(reader, 2)
    install.tidy()
    seen(reader, 2)
    assert install.paid() == PAGES + 36


def test_while_the_new_one_fails(install, document, reader):
    """Three slices are done when the provider refuses the fourth."""
    install.put(document.id, books.plain(PAGES, "leaf"))
    install.meter.plan(script=["answer", "answer", {"do": "fail", "status": 400, "charge": False}])
    assert "failed" in endings(install.work())
    seen(reader, 1)
    install.tidy()
    seen(reader, 1)
    assert install.document(document.id).status is Status.FAILED


def test_while_the_new_one_is_cancelled(install, document, reader):
    """In the middle of its slices; what they left is pruned."""
    install.put(document.id, books.plain(PAGES, "leaf"))
    install.work(most=3)
    install.documents.cancel(WISH, document.id)
    install.tidy()
    seen(reader, 1)
    assert install.rows(document) == PAGES


def test_while_newer_content_overtakes_the_new_one(install, document, reader):
    """Generation 2 never appears; 3 does, whole."""
    reader.whole[3] = texts("folio")
    install.put(document.id, books.plain(PAGES, "leaf"))
    install.work(most=3)
    install.put(document.id, books.plain(PAGES, "folio"))
    install.work()
    seen(reader, 3)
    assert reader.saw(2) == 0


@pytest.mark.g4
@pytest.mark.g5
@pytest.mark.parametrize("point", ["finish.commit", "finish.committed", "settle.commit", "send.answered"])
def test_while_workers_die_at(install, document, reader, point):
    """Two workers die when they come by for the second time; another goes on, and nothing is paid twice."""
    reader.whole[2] = texts("leaf")
    install.put(document.id, books.plain(PAGES, "leaf"))
    for number in range(2):
        came = 0

        def die(name):
            nonlocal came
            came += name == point
            if name == point and came == 2:
                raise faults.Crash

        engine = install.worker(f"mortal{number}")
        with faults.armed(die), pytest.raises(faults.Crash):
            engine.work_off()
        seen(reader, 1, more=1)
        install.pass_time(30.0)
    install.engine.run_until_idle()
    seen(reader, 2)
    assert install.document(document.id).status is Status.SUCCESS
    assert install.meter.totals().excess == 0
