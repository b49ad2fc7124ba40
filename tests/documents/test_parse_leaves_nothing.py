"""The child that reads documents changes nothing of the installation it runs in."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pypdfium2_raw

from tests.documents import pdfs

PROGRAM = """
import sys
from pathlib import Path
from holdfast.documents.parse.parser import Parser
parser = Parser()
print(parser.outline(Path(sys.argv[1])).units)
parser.close()
"""


def test_a_fresh_installation_is_not_left_with_half_a_module(tmp_path):
    """Modules that were never compiled are not compiled under the child's limit on the size of files."""
    package = Path(pypdfium2_raw.__file__).parent
    copy = tmp_path / package.name
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    document = tmp_path / "a.pdf"
    document.write_bytes(pdfs.make(["Anchors hold."]))
    paths = [str(tmp_path), *(entry for entry in sys.path if entry)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(document)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "1", done.stderr
    assert not list(copy.rglob("bindings*.pyc"))
