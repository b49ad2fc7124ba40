"""An API on a port of its own, in this process, for what is measured over HTTP."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast import bootstrap, settings
from holdfast.api import app, server
from holdfast.bootstrap import AppServices


@contextmanager
def serving(url: str, folder: Path) -> Iterator[tuple[AppServices, int]]:
    """The services of an installation on this database, and the port of its API."""
    configured = settings.Settings(data_dir=folder, database_url=url)
    with bootstrap.open_runtime(configured) as runtime:
        built = app.build(runtime)
        listening = server.bound("127.0.0.1", 0)
        running = server.ApiServer(built)
        thread = threading.Thread(target=running.run, args=([listening],))
        thread.start()
        while not running.started:
            time.sleep(0.01)
        try:
            yield AppServices(runtime), listening.getsockname()[1]
        finally:
            running.end()
            thread.join()
            listening.close()
