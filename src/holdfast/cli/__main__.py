"""`python -m holdfast.cli` is `holdfast`."""

import sys

from holdfast.cli import main

if __name__ == "__main__":
    # Without -P the first entry is the current folder, and a `numpy.py` that lies there would be run.
    if not sys.flags.safe_path and sys.path:
        del sys.path[0]
    main()
