"""Where code of the user's own is found: among the installed packages, and in the folders of PYTHON_PATH."""

import sys

from holdfast.settings import Settings


def make_importable(settings: Settings) -> None:
    """Modules in the folders of HOLDFAST_PYTHON_PATH can be imported. May be called again.

    They come last, so that nothing there stands in for a module of Python or of an installed package.
    """
    for folder in settings.python_path:
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
