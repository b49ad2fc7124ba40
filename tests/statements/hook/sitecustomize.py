"""Loaded by every Python process that a test starts while statements are recorded: it records its own.

Nothing of the product knows of it, and nothing is loaded before the process itself loads SQLAlchemy.
"""

import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path

LISTENED_TO = "sqlalchemy.engine.default"


class Finder:
    """Finds one module as everybody does, and has its executions recorded once it is loaded."""

    def find_spec(self, name, path=None, _target=None):
        if name != LISTENED_TO:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def executed(module):
            execute(module)
            recording = _loaded(Path(__file__).resolve().parents[1] / "recording.py")
            recording.Recorder(Path(os.environ[recording.FOLDER])).start(module.DefaultDialect)

        spec.loader.exec_module = executed
        return spec


def _loaded(path):
    """The module at this path; the folder of the tests is not among those that this process imports from."""
    spec = importlib.util.spec_from_file_location("holdfast_statement_recording", path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if "RECORD_STATEMENTS" in os.environ:
    sys.meta_path.insert(0, Finder())
