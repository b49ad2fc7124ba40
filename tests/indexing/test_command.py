"""`holdfast index` and `holdfast search`, as somebody at a terminal uses them."""

import contextlib
import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from holdfast import bootstrap, cli, settings
from holdfast.chaos.waiting import until
from holdfast.chaos.worker_processes import PROGRAM
from holdfast.cli import index_command
from holdfast.service import folder
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.store.features import open_database
from holdfast.store.library import documents
from holdfast.store.views import run_summaries
from tests.documents import pdfs
from tests.indexing.background_worker import BackgroundWorker


@pytest.fixture
def staff(installed):
    working = BackgroundWorker()
    yield working
    working.close()


@pytest.fixture
def shelf(tmp_path):
    """A folder of three files, one of them in a folder of its own, and hidden things beside them."""
    root = tmp_path / "papers"
    (root / "deep/er").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "alpha.txt").write_text("Alpha begins the alphabet.")
    (root / "beta.md").write_text("# Beta\n\nBeta follows at once.")
    (root / "deep/er/gamma.pdf").write_bytes(pdfs.make(["Gamma is third.", "Delta comes after."]))
    (root / ".hidden.txt").write_text("Nobody reads this.")
    (root / ".git/config").write_text("Nor this.")
    return root


@pytest.fixture
def index(holdfast):
    """`index(path, …)` is the exit code and the summary as JSON."""

    def call(*words):
        code, out, _ = holdfast("index", *map(str, words), "--json")
        return code, json.loads(out)

    return call


def pick(summary, *names):
    return tuple(summary[name] for name in names)


def listed(tenant="default", collection="default"):
    db = open_database(settings.load().database_url.get_secret_value())
    try:
        return {each.name: each for each in documents.page(db, tenant, collection)}
    finally:
        db.close()


def test_a_folder_is_indexed_with_all_below_it(staff, meter, shelf, index, holdfast):
    """Hidden files are left alone; the numbers are the true ones, and the words are found."""
    code, output = index(shelf)
    assert code == 0
    assert pick(output, "documents", "new", "pages", "chunks", "paid", "reused") == (3, 3, 4, 4, 4, 0)
    totals = meter.totals()
    assert (totals.charges, totals.tokens) == (output["paid"], output["tokens"])
    assert output["money"] > 0
    assert sorted(listed()) == ["alpha.txt", "beta.md", "deep/er/gamma.pdf"]
    code, out, _ = holdfast("search", "delta", "--mode", "keyword", "--json")
    assert [(hit["title"], hit["page"]) for hit in json.loads(out)["hits"]] == [("gamma.pdf", 2)]


@pytest.mark.g5
def test_an_unchanged_folder_costs_nothing(staff, meter, shelf, index):
    """The second pass makes no run and no exchange with the provider."""
    index(shelf)
    before = meter.totals()
    code, output = index(shelf)
    assert code == 0
    assert pick(output, "documents", "unchanged", "new", "changed", "paid", "tokens") == (3, 3, 0, 0, 0, 0)
    assert meter.totals() == before


@pytest.mark.g5
def test_a_changed_file_is_a_new_generation_of_its_document(staff, meter, shelf, index):
    """One page of two is new: one charge; the others are unchanged."""
    index(shelf)
    before, charges = listed(), meter.totals().charges
    (shelf / "deep/er/gamma.pdf").write_bytes(pdfs.make(["Gamma is third.", "Epsilon comes after."]))
    _, output = index(shelf)
    assert pick(output, "documents", "changed", "unchanged", "paid") == (3, 1, 2, 1)
    assert meter.totals().charges == charges + 1
    after = listed()["deep/er/gamma.pdf"]
    assert (after.id, after.published_generation) == (before["deep/er/gamma.pdf"].id, 2)


def test_a_removed_file_stays_until_it_is_pruned(staff, shelf, index, holdfast):
    """Without --prune nothing is deleted; with it, what no file stands for."""
    index(shelf)
    (shelf / "alpha.txt").unlink()
    _, output = index(shelf)
    assert pick(output, "documents", "unchanged", "removed") == (2, 2, 0)
    assert "alpha.txt" in listed()
    _, output = index(shelf, "--prune")
    assert pick(output, "documents", "unchanged", "removed") == (2, 2, 1)
    assert sorted(listed()) == ["beta.md", "deep/er/gamma.pdf"]
    assert "no results" in holdfast("search", "alphabet", "--mode", "keyword")[1]


def test_a_renamed_file_is_the_same_document(staff, shelf, index, meter):
    """Its bytes are known: not deleted, not paid again, also with --prune."""
    index(shelf)
    charges = meter.totals().charges
    (shelf / "alpha.txt").rename(shelf / "omega.txt")
    _, output = index(shelf, "--prune")
    assert pick(output, "documents", "unchanged", "removed", "paid") == (3, 3, 0, 0)
    assert meter.totals().charges == charges
    assert len(listed()) == 3


def test_files_with_the_same_bytes_are_one_document(staff, shelf, index):
    """They are counted as such, in the first pass as in the second, and one of them keeps it from pruning."""
    (shelf / "twin.txt").write_bytes((shelf / "alpha.txt").read_bytes())
    _, output = index(shelf)
    assert pick(output, "documents", "new", "same_bytes") == (3, 3, 1)
    _, output = index(shelf, "--prune")
    assert pick(output, "documents", "unchanged", "same_bytes", "removed") == (3, 3, 1, 0)
    (shelf / "alpha.txt").unlink()
    _, output = index(shelf, "--prune")
    assert pick(output, "documents", "unchanged", "same_bytes", "removed") == (3, 3, 0, 0)


def test_files_with_the_same_name_in_two_folders_keep_their_documents(staff, tmp_path, index):
    """A change of one is never taken for a change of the other."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "readme.md").write_text(f"Read me, says {name}.")
    both = (tmp_path / "one", tmp_path / "two")
    assert pick(index(*both)[1], "documents", "new") == (2, 2)
    (tmp_path / "one/readme.md").write_text("Read me, says somebody new.")
    assert pick(index(*both)[1], "documents", "changed", "unchanged") == (2, 1, 1)
    db = open_database(settings.load().database_url.get_secret_value())
    digests = {each.digest for each in documents.page(db, "default", "default")}
    db.close()
    saved = {folder._digest(folder.FolderFile("", tmp_path / name / "readme.md")) for name in ("one", "two")}
    assert digests == saved


def test_files_that_cannot_be_taken_in_are_named(staff, shelf, index, holdfast):
    """An empty file is left out, a broken one fails; both are named, and the exit code is 1."""
    (shelf / "empty.txt").touch()
    (shelf / "torn.pdf").write_bytes(b"%PDF-1.7\n" + b"\0garbage" * 50)
    code, output = index(shelf)
    assert code == 1
    assert list(output["refused"]) == ["empty.txt"]
    assert [(each["name"], each["code"]) for each in output["failures"]] == [("torn.pdf", "broken_file")]
    assert pick(output, "documents", "new", "failed") == (4, 4, 1)
    (shelf / "torn.pdf").write_bytes(b"%PDF-1.7\n" + b"\0garbage" * 51)
    code, out, _ = holdfast("index", str(shelf))
    assert code == 1
    assert "empty.txt: " in out
    assert "torn.pdf (document:" in out
    assert "[broken_file]" in out


def test_a_file_that_cannot_be_read_is_named_and_not_pruned(staff, shelf, index, monkeypatch):
    """Its document, and those below a folder that cannot be listed, stay as they are."""
    index(shelf)
    locked = {str(shelf / "alpha.txt"), str(shelf / "deep")}
    opened, scanned = folder.Path.open, os.scandir

    def refuse(genuine):
        def call(path, *words, **more):
            if str(path) in locked:
                raise PermissionError(13, "Permission denied", str(path))
            return genuine(path, *words, **more)

        return call

    monkeypatch.setattr(folder.Path, "open", refuse(opened))
    monkeypatch.setattr(os, "scandir", refuse(scanned))
    code, output = index(shelf, "--prune")
    assert code == 1
    assert sorted(output["refused"]) == ["alpha.txt", "deep/"]
    assert pick(output, "documents", "unchanged", "removed") == (1, 1, 0)
    assert len(listed()) == 3


def test_the_summary_for_people_has_the_numbers(staff, shelf, holdfast):
    """Documents, pages, chunks, paid, reused, tokens, money and time."""
    code, out, _ = holdfast("index", str(shelf), "--collection", "papers")
    assert code == 0
    assert "3 documents: 3 new, 0 changed, 0 unchanged" in out
    assert "4 pages, 4 chunks: 4 paid, 0 reused, " in out
    assert "tokens, $0.000" in out


def test_the_shape_of_the_json(staff, shelf, index):
    """Scripts rely on these names."""
    _, output = index(shelf)
    assert sorted(output) == sorted(index_command.Summary.__dataclass_fields__)
    assert set(output) >= {
        *("documents", "new", "changed", "unchanged", "removed", "failed", "pages", "chunks"),
        *("paid", "reused", "tokens", "money", "seconds", "refused", "failures"),
    }


def test_without_waiting_the_work_is_only_queued(installed, shelf, index, holdfast):
    """No worker is started; a later pass finds the runs under way and makes no others."""
    code, output = index(shelf, "--no-wait")
    assert (code, *pick(output, "documents", "new", "chunks")) == (0, 3, 3, 0)
    _, again = index(shelf, "--no-wait")
    assert pick(again, "documents", "new", "changed", "running") == (3, 0, 0, 3)
    assert {each.generation for each in listed().values()} == {1}


def test_a_pass_waits_for_runs_that_are_under_way_already(installed, shelf, index, monkeypatch):
    """Somebody asked before; the command ends when the files are searchable, not earlier."""
    index(shelf, "--no-wait")
    genuine, working = folder.Folders.take_in, []

    def then_work(*words, **more):
        intake = genuine(*words, **more)
        working.append(BackgroundWorker())
        return intake

    monkeypatch.setattr(folder.Folders, "take_in", then_work)
    code, output = index(shelf)
    working[0].close()
    assert (code, *pick(output, "documents", "running", "chunks")) == (0, 3, 3, 4)
    assert all(each.visible for each in listed().values())


def test_what_is_given_must_be_there(installed, holdfast, tmp_path):
    """A path that does not exist is an error of usage, and names itself."""
    code, _, err = holdfast("index", str(tmp_path / "nowhere"))
    assert code == 2
    assert "nowhere" in err
    assert "[no_such_path]" in err


def test_search_for_people_and_for_scripts(staff, shelf, holdfast):
    """Title, page, document and generation, the passage; in JSON also scores and marks."""
    holdfast("index", str(shelf))
    code, out, _ = holdfast("search", "gamma third")
    assert code == 0
    assert "1. gamma.pdf, page 1  document:" in out
    assert "generation 1" in out
    assert "Gamma is third." in out
    code, out, _ = holdfast("search", "gamma third", "--most", "1", "--json")
    (hit,) = json.loads(out)["hits"]
    assert set(hit) >= {"document_id", "title", "page", "text", "score", "generation", "snippet"}
    assert [hit["snippet"]["text"][start:end] for start, end in hit["snippet"]["marks"]] == ["Gamma", "third"]


def test_search_in_an_unknown_collection(staff, holdfast):
    """Exit code 5 and one line."""
    code, out, err = holdfast("search", "anything", "--collection", "nowhere")
    assert (code, out, err.count("\n")) == (5, "", 1)
    assert "[unknown_collection]" in err


def test_a_tenant_finds_only_its_own(staff, shelf, holdfast):
    """Another tenant's collection of the same name is unknown."""
    holdfast("index", str(shelf), "--tenant", "anna")
    assert holdfast("search", "gamma", "--tenant", "anna")[0] == 0
    assert holdfast("search", "gamma", "--tenant", "ben")[0] == 5


def test_watch_takes_in_what_changes_and_says_nothing_else(staff, shelf, monkeypatch, capsys):
    """A new file, a changed one; a broken one is tried once and not again until it changes."""
    monkeypatch.setattr(index_command, "WATCH_EVERY", 0.05)
    (shelf / "torn.pdf").write_bytes(b"%PDF-1.7\n" + b"\0garbage" * 50)
    passes = []
    genuine = folder.Folders.take_in

    def counted(*words, **more):
        passes.append(len(words))
        if len(passes) == 5:
            (shelf / "later.txt").write_text("Later came a lynx.")
        if len(passes) == 10:
            (shelf / "later.txt").write_text("Later came an otter.")
        if len(passes) == 15:
            raise KeyboardInterrupt
        return genuine(*words, **more)

    monkeypatch.setattr(folder.Folders, "take_in", counted)
    monkeypatch.setattr("sys.argv", ["holdfast", "index", str(shelf), "--watch"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    items = [line for line in capsys.readouterr().out.splitlines() if "new," in line]
    assert [line.partition(", 1 failed")[0] for line in items] == [
        "4 documents: 4 new, 0 changed, 0 unchanged",
        "5 documents: 1 new, 0 changed, 3 unchanged",
        "5 documents: 0 new, 1 changed, 3 unchanged",
    ]
    assert {name: each.generation for name, each in listed().items()} == {
        "alpha.txt": 1,
        "beta.md": 1,
        "deep/er/gamma.pdf": 1,
        "later.txt": 2,
        "torn.pdf": 1,
    }


def processes(mark):
    """The live processes that were started with this folder in their environment."""
    items = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal() and int(path.name) != os.getpid():
            with contextlib.suppress(OSError):  # it may end at any time
                if mark.encode() in (path / "environ").read_bytes():
                    items.append(int(path.name))
    return items


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_where_nobody_works_the_command_brings_its_own_worker(installed, shelf, tmp_path):
    """It starts one, waits, ends it, and leaves no process behind."""
    words = [str(PROGRAM), "index", str(shelf)]
    result = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "no worker is online; starting one" in result.stdout
    assert "3 documents: 3 new" in result.stdout
    until(lambda: not processes(installed["HOLDFAST_DATA_DIR"]), 10, "a process was left behind")
    assert all(each.visible for each in listed().values())


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_command_that_is_told_to_stop_ends_its_worker(installed, shelf, meter, tmp_path):
    """SIGTERM in the middle: exit code 130, no process behind, and what was not done is still queued."""
    meter.hold("before")
    with subprocess.Popen(
        [str(PROGRAM), "index", str(shelf)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=tmp_path
    ) as started:
        meter.wait_open(timeout=60)
        started.send_signal(signal.SIGTERM)
        threading.Timer(1.0, meter.release).start()
        code = started.wait(60)
    assert code == 130
    until(lambda: not processes(installed["HOLDFAST_DATA_DIR"]), 10, "a process was left behind")
    assert {each.status.value for each in listed().values()} <= {"queued", "running", "success"}


def test_numbers_are_of_the_runs_of_this_pass(installed, shelf, index):
    """What an earlier pass paid is not counted again."""
    working = BackgroundWorker()
    try:
        index(shelf)
        (shelf / "more.txt").write_text("One more.")
        _, output = index(shelf)
    finally:
        working.close()
    assert pick(output, "new", "unchanged", "pages", "chunks", "paid") == (1, 3, 1, 1, 1)


def test_following_names_the_documents_that_failed(staff, installed):
    """A document without a file's name is called by its title."""
    with bootstrap.open_runtime(settings.load()) as runtime:
        services = bootstrap.AppServices(runtime)
        services.collections.make(RequestContext(), "default")
        upload = Upload(b"PK\x03\x04 torn", title="A torn note", source="text")
        taken = services.documents.add(RequestContext(), "default", [upload])[0]
        until(lambda: not run_summaries.live(runtime.db, [taken.answer.run_id]), 20, "it does not end")
        (failure,) = run_summaries.tally(runtime.db, [taken.answer.run_id]).failures
    assert (failure.subject, failure.name) == (f"document:{taken.document.id}", "A torn note")


def test_what_failed_for_good_is_not_tried_again_on_each_pass(staff, shelf, index, holdfast):
    """The same bytes cannot be read the second time either: told apart from what changed, exit code 0."""
    (shelf / "torn.pdf").write_bytes(b"%PDF-1.7\n" + b"\0garbage" * 50)
    assert index(shelf)[0] == 1
    before = listed()["torn.pdf"].generation
    code, output = index(shelf)
    assert (code, pick(output, "changed", "unchanged", "failed", "failed_before")) == (0, (0, 3, 0, 1))
    assert listed()["torn.pdf"].generation == before
    assert "1 failed before (see: holdfast documents list --state failed)" in holdfast("index", str(shelf))[1]
    (shelf / "torn.pdf").write_bytes(pdfs.make(["Mended."]))
    assert pick(index(shelf)[1], "changed", "failed_before") == (1, 0)


def test_files_are_chosen_by_patterns(staff, shelf, index):
    """`--glob` takes only some, `--ignore` leaves some out with their folders; neither prunes the others."""
    _, output = index(shelf, "--glob", "*.txt", "--glob", "*.md")
    assert (output["new"], sorted(listed())) == (2, ["alpha.txt", "beta.md"])
    index(shelf)
    assert len(listed()) == 3
    _, output = index(shelf, "--ignore", "deep", "--prune")
    assert pick(output, "documents", "unchanged", "removed") == (2, 2, 0)
    (shelf / "alpha.txt").unlink()
    _, output = index(shelf, "--ignore", "deep/*", "--prune")
    assert (output["removed"], sorted(listed())) == (1, ["beta.md", "deep/er/gamma.pdf"])


def test_a_password_file_opens_what_could_not_be_opened_before(index, staff, tmp_path):
    """Indexed without it, a protected file fails for good; with it, the same file is searchable."""
    folder_path, secret = tmp_path / "papers", tmp_path / "secret"
    folder_path.mkdir()
    (folder_path / "locked.pdf").write_bytes(pdfs.make(["The hidden lighthouse"], password="sesame"))
    secret.write_text("sesame\n")
    assert pick(index(folder_path)[1], "new", "failed") == (1, 1)
    assert pick(index(folder_path)[1], "failed_before", "failed") == (1, 0)
    code, summary = index(folder_path, "--password-file", secret)
    assert (code, *pick(summary, "changed", "failed", "chunks")) == (0, 1, 0, 1)
