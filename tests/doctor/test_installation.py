"""The installation: its settings and its database, in the bad state and in the good one."""

import pytest

from holdfast import settings
from holdfast.bootstrap import examination
from holdfast.core.states import LANE_RANK
from holdfast.doctor import catalogue, gather
from holdfast.doctor.facts import Declared
from holdfast.doctor.findings import FindingState
from holdfast.store.features import open_database
from holdfast.store.money import budgets
from holdfast.store.protocol import workers

# The checks that are proven in this file.
INSTALLATION = ("H1", "H2", "H3", "H4", "H5")
LLM = {"LLM_PROVIDER": "openai", "LLM_API_KEY": "sk-hunter22"}


@pytest.fixture
def examined(sqlite_url, monkeypatch):
    """The state of a check, with these settings; `hosts` are machines whose workers reported."""
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", sqlite_url)
    db = open_database(sqlite_url)

    def state(check_id, hosts=(), **options):
        for name, value in options.items():
            monkeypatch.setenv(f"HOLDFAST_{name}", value)
        for host in hosts:
            workers.report(db, report(host))
        loaded = settings.load()
        own = examination.installation(loaded, db)
        facts = gather.assembled(examination.database(loaded), Declared(), own, folder=loaded.data_dir)
        matching = [each for each in catalogue.examine(facts).findings if each.id == check_id]
        assert "hunter22" not in repr(facts)
        return {each.state for each in matching}

    state.db = db
    yield state
    db.close()


def report(host):
    lanes = tuple(LANE_RANK)
    return workers.Worker(
        host, f"{host}-1", host, 1, "0.1", "embedded", "", lanes, (), 2, 0, workers.WorkerState.WORKING
    )


def test_several_hosts_need_servers_and_a_bucket(examined):
    """Workers on two machines with SQLite, the embedded broker and a folder for documents."""
    assert examined("H1") == examined("H2") == {FindingState.PASSED}
    assert examined("H1", hosts=("one.internal", "two.internal")) == {FindingState.PROBLEM}
    assert examined("H2") == {FindingState.PROBLEM}
    assert examined("H2", BLOBS_URL="s3://documents/prefix") == {FindingState.PASSED}


def test_languages_of_ocr(examined):
    """A language without its file; then text recognition is off."""
    pytest.importorskip("tesserocr")
    assert examined("H3", OCR_LANGUAGES="eng") == {FindingState.PASSED}
    assert examined("H3", OCR_LANGUAGES="eng+tlh") == {FindingState.PROBLEM}
    assert examined("H3", OCR="off") == {FindingState.PASSED}


def test_prices_and_budgets(examined):
    """A paid model without a price or a limit; a budget, or a limit per run, limits it."""
    assert examined("H4") == examined("H5") == {FindingState.PASSED}
    assert examined("H4", **LLM, LLM_MODEL="model-of-tomorrow") == {FindingState.PROBLEM}
    assert examined("H4", LLM_MODEL="gpt-4o-mini") == {FindingState.PASSED}
    assert examined("H5") == {FindingState.PROBLEM}
    budgets.set_budget(examined.db, "default", budgets.TENANT, hard=50, actor="test")
    assert examined("H5") == {FindingState.PASSED}
