"""The import path for user code: installed packages, then the folders of PYTHON_PATH."""

import sys

from holdfast.settings import Settings


def make_importable(settings: Settings) -> None:
    """Make the folders of HOLDFAST_PYTHON_PATH importable. May be called again.

    They come last, so that nothing in them shadows a standard or installed module.
    """
    for folder in settings.python_path:
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
