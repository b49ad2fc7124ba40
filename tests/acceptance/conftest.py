"""Full-length scenarios are left to those who ask for them: `make chaos`, or `pytest -m chaos`."""

from pathlib import Path

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config, items):
    """Without a word about chaos on the command line, this folder's chaos is not run."""
    if "chaos" in (config.option.markexpr or ""):
        return
    left_out = [each for each in items if HERE in each.path.parents and each.get_closest_marker("chaos")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [each for each in items if each not in left_out]
