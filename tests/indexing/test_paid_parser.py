"""A parser of the user's own that needs a paid service: its call goes through the ledger."""

import sys
from contextlib import closing
from dataclasses import replace

import pytest

from holdfast import faults
from holdfast.core.states import Status
from holdfast.documents.parse.parser import Parser
from holdfast.ledger.prices import Price, ProviderPrices, dollars
from holdfast.store.money import budgets, payments
from holdfast.testing.prices import PRICES
from tests.indexing import books
from tests.indexing.install import WISH, IndexingInstall

MODULE = """
import json


class Layout:
    version = "1"

    def accepts(self, head, name):
        return b"SCAN" in head or head.startswith(b"%PDF")

    def request(self, file):
        return {
            "provider": "document-ai",
            "endpoint": "documents/parse",
            "model": "layout-2",
            "json": {"document": "data:;base64,{file}", "model": "layout-2"},
        }

    def read(self, file, answer):
        return json.load(answer)["pages"]


class Newer(Layout):
    version = "2"


class Elsewhere(Layout):
    def request(self, file):
        return super().request(file) | {"provider": "nobody"}


class AsForm(Layout):
    def request(self, file):
        form = {"provider": "document-ai", "endpoint": "documents/parse", "model": "layout-2"}
        return form | {"form": {"language": "en"}, "query": {"fast": "1"}}


class AsFile(Layout):
    def request(self, file):
        return {"provider": "document-ai", "endpoint": "documents/parse", "model": "layout-2", "pages": 7}


class Thrifty(Layout):
    def request(self, file):
        return None if b"TEXT" in file.read() else super().request(file)

    def read(self, file, answer):
        return [[file.read().decode()]] if answer is None else super().read(file, answer)


class Upwards(Layout):
    def request(self, file):
        return super().request(file) | {"endpoint": "../admin"}
"""
NAMES = ("Layout", "Newer", "Elsewhere", "AsForm", "AsFile", "Thrifty", "Upwards")
SCAN = "SCAN The tide is high.\n\fThe lamp is lit."
PAGE = dollars(0.01)


class KilledError(BaseException):
    """Ends the work as kill -9 would: nothing catches it."""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """The file of the paid parsers, from which they can be imported."""
    path = tmp_path_factory.mktemp("parsers") / "paid_parsers.py"
    path.write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(path.parent)])
        yield path


@pytest.fixture(scope="module")
def parser(module):
    """A parser process with the paid parsers of its user."""
    running = Parser(own=[f"{module.stem}:{name}" for name in NAMES])
    yield running
    running.close()


def opened(url, folder, meter, parser):
    """An installation whose parsers ask a service that costs a cent per page."""
    prices = replace(PRICES, providers={"documents@meter": ProviderPrices({"layout-2": Price(0, 0, PAGE)})})
    names = tuple(f"paid_parsers:{name}" for name in NAMES)
    services = {"document-ai": "documents@meter"}
    return IndexingInstall(url, folder, meter, parser, services, prices, own_parsers=names)


@pytest.fixture
def install(database_url, tmp_path, meter, parser):
    with closing(opened(database_url, tmp_path / "data", meter, parser)) as built:
        yield built


@pytest.fixture
def small(sqlite_url, tmp_path, meter, parser):
    """The same on one database, for what concerns the request alone."""
    with closing(opened(sqlite_url, tmp_path / "data", meter, parser)) as built:
        yield built


def reads(meter):
    """How many documents the service has charged for, and how many exchanges it took."""
    log = [each for each in meter.log() if each["endpoint"] == "documents/parse"]
    return sum(each["charged"] for each in log), len(log)


@pytest.mark.g5
def test_a_file_is_read_by_the_paid_service_once(install, meter):
    """Over chunk sizes, forced re-indexing, and another document with the same bytes."""
    document = install.indexed(SCAN, "a.scan")
    assert install.texts(document) == ["SCAN The tide is high.", "The lamp is lit."]
    assert document.format == "own"
    assert install.run(document).status is Status.SUCCESS
    install.documents.index(WISH, document.id, force=True)
    install.work()
    install.collections.change(WISH, "shelf", options={"chunk_size": 64})
    install.work()
    install.indexed(SCAN, "b.scan", to="other")
    assert reads(meter) == (1, 1)
    assert install.document(document.id).published_generation == 3


@pytest.mark.g5
def test_another_tenant_pays_for_itself(small, meter):
    """Else a free answer would say what somebody else has."""
    small.indexed(SCAN, "a.scan")
    small.indexed(SCAN, "a.scan", tenant="guest")
    assert reads(meter)[0] == 2


def test_another_version_of_the_parser_is_paid_again(install, meter):
    """And so is another parser; going back costs nothing."""
    install.collections.make(WISH, "versions", options={"parsers": {"text": "Layout"}})
    install.indexed(SCAN, "a.scan", to="versions")
    for choice, charged in (("Newer", 2), ("Layout", 2)):
        install.collections.change(WISH, "versions", options={"parsers": {"text": choice}})
        install.work()
        assert reads(meter)[0] == charged


def test_the_bill_has_the_pages_that_the_service_counted(install):
    """Two pages at a cent each, beside the embeddings; the log of the run names the service."""
    document = install.indexed(SCAN, "a.scan")
    spent = install.db.read(lambda tx: payments.by_run(tx, [document.run_id]))[document.run_id]
    assert spent.paid_calls == 3
    assert 2 * PAGE < spent.paid < 2 * PAGE + dollars(0.001)
    assert spent.unpriced_calls == 0


@pytest.mark.g5
@pytest.mark.parametrize("when", ["send.answered", "settle.committed", "finish.commit"])
def test_killed_between_the_answer_and_the_publication_it_is_charged_once(install, meter, when):
    """Another worker takes over what was settled, or sends the same bytes under the same key."""
    document = install.upload(SCAN, "a.scan").document

    def die(name):
        if name == when:
            raise KilledError

    with faults.armed(die), pytest.raises(KilledError):
        install.work()
    assert install.document(document.id).published_generation == 0
    install.die()
    second = install.worker("second")
    second.sweep()
    second.work_off()
    document = install.document(document.id)
    assert install.texts(document) == ["SCAN The tide is high.", "The lamp is lit."]
    assert reads(meter)[0] == 1
    assert meter.totals().excess == 0


@pytest.mark.parametrize(
    ("act", "code"),
    [
        ({"body": "no pages in here"}, "unreadable_answer"),
        ({"body": "x" * 70_000}, "answer_too_large"),
        ({"status": 415, "charge": False}, "provider_rejected"),
        ({"status": 403, "charge": False}, "provider_auth"),
        ({"status": 500, "charge": False, "times": 20}, "provider_unavailable"),
    ],
)
def test_an_answer_that_is_none_fails_the_document_with_its_code(small, meter, act, code):
    """The version that was there still answers; nothing of the new one is seen."""
    document = small.indexed("TEXT of before", "a.txt")
    meter.plan(script=[{"do": "answer", **act}])
    small.put(document.id, SCAN, "a.scan")
    small.work()
    document = small.document(document.id)
    assert (small.run(document).error_code, small.texts(document)) == (code, ["TEXT of before"])


@pytest.mark.g5
def test_a_parser_that_was_fixed_reads_the_answer_that_is_kept(install, meter, module):
    """The answer is paid for although the parser could not read it; a retry asks nobody."""
    module.write_text(MODULE.replace('["pages"]', '["sheets"]'))
    install.parser.close()
    document = install.indexed(SCAN, "a.scan")
    module.write_text(MODULE)
    install.parser.close()
    assert install.run(document).error_code == "unreadable_answer"
    install.documents.index(WISH, document.id)
    install.work()
    assert install.texts(document)[0] == "SCAN The tide is high."
    assert reads(meter) == (1, 1)


@pytest.mark.parametrize(("choice", "code"), [("Elsewhere", "no_provider"), ("Upwards", "parser_unfit")])
def test_a_request_that_cannot_be_made_costs_nothing(small, meter, choice, code):
    """A provider that is not set up, and a path that leaves the provider's URL."""
    small.collections.make(WISH, "odd", options={"parsers": {"text": choice}})
    document = small.indexed(SCAN, "a.scan", to="odd")
    assert small.run(document).error_code == code
    assert meter.totals().exchanges == 0


@pytest.mark.parametrize("choice", ["AsForm", "AsFile"])
def test_a_file_may_be_sent_in_a_form_or_as_it_is(small, meter, choice):
    """The service gets exactly its bytes."""
    small.collections.make(WISH, "sent", options={"parsers": {"text": choice}})
    small.indexed(SCAN, "a.scan", to="sent")
    assert meter.charges_of(SCAN) == 1


def test_a_parser_may_do_without_the_service(small, meter):
    """For a file that it reads by itself it gets no answer."""
    small.collections.make(WISH, "thrift", options={"parsers": {"text": "Thrifty"}})
    document = small.indexed("TEXT of the tide", "a.txt", to="thrift")
    assert small.texts(document) == ["TEXT of the tide"]
    assert reads(meter) == (0, 0)


def test_a_budget_holds_the_call_back(install, meter):
    """Nothing is sent beyond it; when it is raised the document is read."""
    budgets.set_budget(install.db, "default", budgets.TENANT, hard=PAGE)
    document = install.upload(books.plain(2), "a.pdf").document
    install.work()
    assert install.document(document.id).status is Status.RUNNING
    assert reads(meter) == (0, 0)
    budgets.set_budget(install.db, "default", budgets.TENANT, hard=3 * PAGE)
    budgets.resume(install.db, "default", budgets.TENANT)
    install.work()
    assert reads(meter) == (1, 1)
