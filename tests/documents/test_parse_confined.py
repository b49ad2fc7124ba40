"""What code inside the parsing process can do, tried from inside: a file may have taken the process over."""

import os
import sys
from pathlib import Path

import pytest

from holdfast.documents.parse import children, sandbox
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import MIB, ParseLimits

# A real child that carries out what it is told instead of parsing.
TAKEN_OVER = """
import sys; sys.path[:] = sys.argv[3:]
from holdfast.documents.parse import child
def do(reader, request, source):
    scope = {"source": source}
    exec(request["code"], scope)
    return scope["result"]
child._do = do
child.main(int(sys.argv[1]), sys.argv[2])
"""


@pytest.fixture
def inside(monkeypatch):
    """`inside(code)` is the `result` of the code in a child; an error is its name."""
    monkeypatch.setattr(children, "_BOOT", TAKEN_OVER)
    monkeypatch.setenv("HOLDFAST_EMBEDDING_API_KEY", "sk-secret")
    parser = Parser(ParseLimits(memory=300 * MIB))

    def run(code):
        indented = "\n".join(f"    {line}" for line in code.splitlines())
        tried = f"try:\n{indented}\nexcept Exception as error:\n    result = type(error).__name__"
        return parser._ask({"ask": "code", "code": tried})

    yield run, parser.measures()
    parser.close()


def needs(measures, word):
    if not any(word in each for each in measures):
        pytest.skip(f"this system has no {word}")


def test_its_environment_is_empty(inside):
    """Neither keys nor passwords of its owner are there, nor in what the kernel remembers of its start."""
    run, _measures = inside
    assert run("import os\nresult = dict(os.environ)") == {}
    assert run("result = open('/proc/self/environ').read()") in {"", "PermissionError"}


def test_its_limits_cannot_be_raised(inside):
    """They are hard, and so the same however often it asks."""
    run, _measures = inside
    limits = run(
        "import resource as r\n"
        "names = ('RLIMIT_AS', 'RLIMIT_FSIZE', 'RLIMIT_CORE', 'RLIMIT_NOFILE')\n"
        "result = [r.getrlimit(getattr(r, name)) for name in names]"
    )
    assert limits == [[most, most] for most in (300 * MIB, sandbox.MOST_WORDS, 0, sandbox.MOST_FILES)]
    if os.geteuid():
        raised = "r.setrlimit(r.RLIMIT_AS, (r.RLIM_INFINITY,) * 2)"
        assert run(f"import resource as r\n{raised}\nresult = 'raised'") == "ValueError"


def test_it_gains_no_privilege(inside):
    """Programs that run as somebody else do not do so for it."""
    run, measures = inside
    needs(measures, "privileges")
    assert run("import ctypes\nresult = ctypes.CDLL(None).prctl(39, 0, 0, 0, 0)") in {1, -1}
    status = run("result = [l for l in open('/proc/self/status') if 'NoNewPrivs' in l]")
    assert status in (["NoNewPrivs:\t1\n"], "PermissionError")


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_UNIX"])
def test_it_has_no_network(inside, family):
    """It cannot tell anybody what it reads."""
    run, measures = inside
    needs(measures, "network")
    code = f"import socket\nsocket.socket(socket.{family}).connect(('127.0.0.1', 9))\nresult = 'connected'"
    assert run(code) in {"PermissionError", "OSError"}


def test_it_opens_no_file(inside, tmp_path):
    """Not the database beside it, nor the passwords of the machine, nor a file to write."""
    run, measures = inside
    needs(measures, "Landlock")
    database = tmp_path / "holdfast.db"
    database.write_bytes(b"SQLite format 3")
    for path in (database, "/etc/passwd", "/proc/self/environ", Path(__file__).resolve()):
        assert run(f"result = open({str(path)!r}, 'rb').read(5).decode()") == "PermissionError"
    assert run(f"result = open({str(tmp_path / 'new')!r}, 'w').write('x')") == "PermissionError"
    assert run(f"import os\nresult = os.listdir({str(tmp_path)!r})") == "PermissionError"


def test_it_starts_no_program_and_sends_no_signal(inside):
    """It can neither become another program nor end its owner."""
    run, measures = inside
    needs(measures, "seccomp")
    assert run("import os\nos.execv('/bin/true', ['true'])") == "PermissionError"
    assert run("import os\nresult = os.fork()") == "PermissionError"
    assert run(f"import os\nos.kill({os.getpid()}, 0)\nresult = 'sent'") == "PermissionError"
    assert run("import os, signal\nos.kill(os.getpid(), 0)\nresult = 'sent'") == "PermissionError"


def test_what_is_in_force_is_told(inside):
    """In plain words, and all of it on a kernel that has it."""
    _run, measures = inside
    assert measures[0] == "an empty environment"
    if sys.platform == "linux":
        assert "no new privileges" in measures


def test_a_system_without_these_means_still_parses(monkeypatch, keep):
    """Where the kernel has neither Landlock nor seccomp, there is less to tell and nothing fails."""
    without = (
        "import sys; sys.path[:] = sys.argv[3:]; from holdfast.documents.parse import child, sandbox;"
        " sandbox._restrict_files = sandbox._filter_calls = sandbox._leave_network = lambda *_: False;"
        " child.main(int(sys.argv[1]), sys.argv[2])"
    )
    monkeypatch.setattr(children, "_BOOT", without)
    parser = Parser()
    try:
        assert parser.outline(keep(b"<html><body><p>hello</p>")).units == 1
        assert not any("Landlock" in each or "network" in each for each in parser.measures())
    finally:
        parser.close()
