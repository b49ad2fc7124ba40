"""The parsing process: what it may use up, how it dies, and that nobody is left waiting or left over."""

import concurrent.futures
import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from holdfast.core.errors import WorkError
from holdfast.documents.parse import children, wire
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import MIB, Format, ParseLimits, UnitRange
from tests.documents import files, pdfs

ALL = UnitRange(1, 1)


@pytest.fixture
def make():
    """`make(**limits)` is a parser of its own, closed after the test."""
    items = []

    def maker(**limits):
        items.append(Parser(ParseLimits(**limits)))
        return items[-1]

    yield maker
    for parser in items:
        parser.close()


@pytest.fixture
def page(keep):
    return keep(b"<html><body><p>hello</p></body></html>")


def pid(parser):
    return parser._child._process.pid


def hello(parser, path):
    (page,) = parser.read(path, Format.HTML, ALL)
    return [block.text for block in page.blocks] == ["hello"]


def code_of(call, *arguments):
    with pytest.raises(WorkError) as caught:
        call(*arguments)
    return caught.value.code


def ended(process, seconds=10):
    """True when the process has ended, or ends within the time."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def during(parser, path, *signals):
    """The outcome of a request whose child gets the signals while it has the document."""
    assert hello(parser, path)
    child = pid(parser)
    os.kill(child, signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        requested = pool.submit(parser.read, path, Format.HTML, ALL)
        while not parser._lock.locked():
            pass
        for number in signals:
            os.kill(child, number)
        return requested.result()


def test_one_child_serves_many_documents(make, page):
    """Starting Python for each document would cost more than most documents do."""
    parser = make()
    assert hello(parser, page)
    first = pid(parser)
    assert all(hello(parser, page) for _ in range(20))
    assert pid(parser) == first


def test_a_document_that_takes_too_long_is_stopped(make, page):
    """The child is ended at the limit, the error says so, and the next document finds a new child."""
    parser = make()
    assert hello(parser, page)
    parser._child._limits = ParseLimits(seconds=0.2)
    stuck = pid(parser)
    os.kill(stuck, signal.SIGSTOP)
    assert code_of(parser.read, page, Format.HTML, ALL) == "parse_timeout"
    assert ended(stuck)
    assert hello(parser, page)


def test_a_document_that_takes_too_much_cpu_is_stopped_without_its_owner(make, page):
    """The kernel ends a child whose owner is not there to look at the clock."""
    parser = make()
    assert hello(parser, page)
    with pytest.raises(WorkError) as caught:
        during(parser, page, signal.SIGXCPU, signal.SIGCONT)
    assert caught.value.code == "parse_timeout"


def test_a_document_that_eats_memory_is_stopped(make, keep, page):
    """A text of 40 MB does not fit into 96 MB of address space as a tree; small ones still do."""
    parser = make(memory=96 * MIB)
    greedy = keep(b"<html><body>" + b"<p>x</p>" * (5 * MIB), "greedy")
    assert code_of(parser.read, greedy, Format.HTML, ALL) == "parse_memory"
    assert hello(parser, page)


def test_native_code_that_is_refused_memory_is_told_from_a_crash(make, keep):
    """One cell in the last corner of a sheet asks for a grid of seventeen thousand million."""
    corner = files.workbook({"A": [["x"]]})
    rows = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    sheet = (
        '<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        f"<sheetData>{rows}</sheetData></worksheet>"
    )
    path = keep(files.replaced(corner, "xl/worksheets/sheet1.xml", sheet.encode()))
    assert code_of(make().outline, path) == "parse_memory"


def test_a_parser_that_crashes_breaks_only_its_document(make, page):
    """A segmentation fault is a broken file, and the next document is read by a new child."""
    parser = make()
    with pytest.raises(WorkError) as caught:
        during(parser, page, signal.SIGSEGV, signal.SIGCONT)
    assert caught.value.code == "broken_file"
    assert hello(parser, page)


def test_a_crash_near_the_limit_of_memory_is_for_want_of_it(make, page, monkeypatch):
    """Native code that is refused memory may die without a word."""
    seen = threading.Event()

    def look(child):
        child._largest = child._limits.memory
        seen.set()

    monkeypatch.setattr(children.ParserProcess, "_look", look)
    parser = make()
    assert hello(parser, page)
    seen.clear()
    child = pid(parser)
    os.kill(child, signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        requested = pool.submit(code_of, parser.read, page, Format.HTML, ALL)
        assert seen.wait(10)
        os.kill(child, signal.SIGSEGV)
        os.kill(child, signal.SIGCONT)
        assert requested.result() == "parse_memory"


def test_an_answer_nobody_waited_for_is_not_given_to_the_next_document(make, keep, page, monkeypatch):
    """A time limit may be raised in the middle of the waiting; the next document still gets its own."""
    parser = make()
    other = keep(b"<html><body><p>other</p></body></html>", "other")
    assert hello(parser, page)
    os.kill(pid(parser), signal.SIGSTOP)

    def interrupt(child):
        os.kill(child._process.pid, signal.SIGCONT)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(children.ParserProcess, "_look", interrupt)
        with pytest.raises(KeyboardInterrupt):
            parser.read(other, Format.HTML, ALL)
    assert hello(parser, page)


def test_the_size_of_a_child_at_work_is_seen(make, page):
    """What the verdict goes by is the address space that the limit is on."""
    parser = make()
    assert hello(parser, page)
    parser._child._look()
    assert 5 * MIB < parser._child._largest < parser._limits.memory


def test_a_child_that_somebody_else_kills_costs_nothing(make, page):
    """Its document is given to a new one."""
    parser = make()
    assert [block.text for block in during(parser, page, signal.SIGKILL)[0].blocks] == ["hello"]


def test_a_child_dies_with_the_thread_that_started_it_and_nobody_notices(make, page):
    """The kernel ties a child to a thread of its owner; other threads go on with another child."""
    parser = make()
    thread = threading.Thread(target=hello, args=(parser, page))
    thread.start()
    thread.join()
    assert ended(pid(parser))
    assert hello(parser, page)


def test_a_service_that_stops_does_not_break_the_document_in_hand(make, page):
    """What is sent to every process of a service, or of a terminal, does not end a child at work."""
    result = during(make(), page, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCONT)
    assert [block.text for block in result[0].blocks] == ["hello"]


def test_an_answer_that_came_while_its_owner_was_frozen_is_taken(make, page, monkeypatch):
    """The clock says that it is too late, the answer says that it is not."""
    parser = make(seconds=30)
    assert hello(parser, page)
    real, started = children.time.monotonic, []

    def after_a_long_freeze():
        started.append(1)
        if len(started) == 2:
            select.select([parser._child._process.stdout], [], [], 10)
        return real() + (3600 if len(started) > 1 else 0)

    monkeypatch.setattr(children.time, "monotonic", after_a_long_freeze)
    assert hello(parser, page)
    assert len(started) > 1


def test_an_answer_that_is_too_large_is_not_taken(make, keep):
    """A slice of more text than the limit is refused before it fills this process."""
    path = keep(b"<html><body><p>" + b"word " * 1000)
    assert code_of(make(reply=1000).read, path, Format.HTML, ALL) == "too_large"


def test_a_parser_that_cannot_run_is_not_the_fault_of_the_document(make, page, monkeypatch):
    """A broken installation is told as such."""
    monkeypatch.setattr(children, "_BOOT", "raise ImportError('no such parser')")
    with pytest.raises(WorkError, match="no such parser") as caught:
        make().read(page, Format.HTML, ALL)
    assert caught.value.code == "parser_unfit"


def test_a_child_that_died_before_it_was_asked_is_heard_all_the_same(monkeypatch):
    """It may start and fail while its owner waits for the processor: why it did is not thrown away."""
    monkeypatch.setattr(children, "_BOOT", "raise ImportError('no such parser')")
    child = children.ParserProcess(ParseLimits())
    child._process.wait(60)
    with pytest.raises(children.DiedError) as caught:
        child.ask({})
    assert (caught.value.cause, "no such parser" in caught.value.words) == ("unfit", True)


def test_a_library_of_the_parser_that_is_missing_is_not_the_fault_of_the_document(make, page, monkeypatch):
    """It is found out with the first document that needs it, inside the child."""
    gone = f"import sys; sys.modules['selectolax'] = None; {children._BOOT.removeprefix('import sys; ')}"
    monkeypatch.setattr(children, "_BOOT", gone)
    with pytest.raises(WorkError, match="fix the installation") as caught:
        make().read(page, Format.HTML, ALL)
    assert caught.value.code == "parser_unfit"


@pytest.mark.parametrize(("name", "value"), [("MOST_REQUESTS", 3), ("GROWN", 1)])
def test_a_worn_child_is_replaced(make, page, monkeypatch, name, value):
    """After many documents, or when it has grown, the next document gets a fresh one and the old one ends."""
    monkeypatch.setattr(children, name, value)
    parser = make()
    seen = []
    for _ in range(4):
        assert hello(parser, page)
        seen.append(pid(parser))
    assert len(set(seen)) > 1
    assert all(ended(old) for old in set(seen) - {pid(parser)})


def test_threads_take_turns(make, page):
    """Eight threads share a parser and each gets its own document."""
    parser = make()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: hello(parser, page), range(40)))


OWNER = """
import os, signal, sys
from pathlib import Path
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import Format, UnitRange
parser, page = Parser(), Path(sys.argv[1])
hello = lambda: parser.read(page, Format.HTML, UnitRange(1, 1))[0].blocks[0].text == "hello"
pid = lambda: parser._child._process.pid
assert hello()
"""
FORKER = (
    OWNER
    + """
before = pid()
parser._lock.acquire()  # as another thread might hold it
if (other := os.fork()) == 0:
    signal.alarm(20)
    os._exit(0 if hello() and pid() != before else 1)
assert os.waitpid(other, 0)[1] == 0
parser._lock.release()
assert hello() and pid() == before
parser.close()
"""
)


def owner(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_a_fork_does_not_share_the_child(page):
    """Both sides of a fork read on, each with a child of its own."""
    with owner(FORKER, str(page)) as process:
        try:
            assert process.wait(30) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("stopped", [False, True], ids=["idle", "at work"])
def test_a_child_does_not_outlive_its_owner(page, stopped):
    """An owner that is killed takes its child along, also in the middle of a document."""
    with owner(OWNER + "print(pid(), flush=True); input()", str(page)) as process:
        child = int(process.stdout.readline())
        if stopped:
            os.kill(child, signal.SIGSTOP)
        process.kill()
    assert ended(child)


def test_the_child_loads_only_what_it_needs():
    """Its start is not paid for by parsers that no document has asked for, nor by the store."""
    heavy = {
        "sqlalchemy",
        "celery",
        "pydantic",
        "pypdfium2",
        "docx",
        "pptx",
        "PIL",
        "charset_normalizer",
        "numpy",
    }
    script = "import holdfast.documents.parse.child, sys, json; print(json.dumps(list(sys.modules)))"
    loaded = json.loads(subprocess.check_output([sys.executable, "-c", script], text=True))
    assert heavy & set(loaded) == set()


def test_a_child_that_talks_nonsense_is_not_believed():
    """What does not have the shape of pages is an error, not a document."""
    for nonsense in ([[1]], [["x", None, []]], [[1, None, ["heading", 1]]], [[1, None, ["spell", 1, "x"]]]):
        with pytest.raises((KeyError, TypeError, ValueError)):
            wire.pages_from(nonsense)


@pytest.mark.slow
def test_a_pdf_of_2000_pages_is_read_in_bounded_memory(make, keep):
    """Slice after slice, the child stays under 150 MB."""
    lines = "\n".join(
        f"Line {number} of a page with words enough to make some text of it." for number in range(12)
    )
    path = keep(pdfs.make([f"Page {number}\n{lines}" for number in range(2000)]))
    parser = make()
    assert parser.outline(path).units == 2000
    for first in range(1, 2001, 12):
        pages = parser.read(path, Format.PDF, UnitRange(first, first + 11))
        assert pages[0].blocks[0].text.startswith(f"Page {first - 1} ")
    status = Path(f"/proc/{pid(parser)}/status").read_text()
    assert int(status.split("VmHWM:")[1].split()[0]) < 150 * 1024
