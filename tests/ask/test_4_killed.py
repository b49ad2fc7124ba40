"""`kill -9` of the API in the middle of a stream: charged at most once more, and never lost silently."""

import contextlib
import os
import re
import signal
import subprocess
import sys

import pytest

from holdfast.chaos.waiting import until
from tests.ask.conftest import TOWER, AskInstall, EventStream

QUESTION = "How tall is the Eiffel Tower?"
pytestmark = pytest.mark.g5


@contextlib.contextmanager
def running(environment):
    """The API on a free port; the process and the port."""
    command = [sys.executable, "-m", "holdfast.cli", "api", "--port", "0"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process, int(re.search(r":(\d+)$", process.stdout.readline().strip())[1])
        finally:
            process.kill()


def test_the_next_who_asks_gets_the_answer(sqlite_url, tmp_path, llm, model):
    """The order of the dead process is in doubt and is sent again; the bill has both."""
    install = AskInstall(sqlite_url, tmp_path / "data", llm, model)
    install.client.indexed(TOWER, title="Towers")
    environment = {
        **os.environ,
        "HOLDFAST_DATA_DIR": str(tmp_path / "data"),
        "HOLDFAST_DATABASE_URL": sqlite_url,
        "HOLDFAST_LLM_PROVIDER": "openai",
        "HOLDFAST_LLM_BASE_URL": llm.base_url,
        "HOLDFAST_LLM_MODEL": "gpt-4o-mini",
    }
    llm.hold("during")
    with running(environment) as (process, port), contextlib.ExitStack() as undo:
        events = EventStream(port, {"question": QUESTION, "stream": True})
        undo.callback(events.hang_up)
        events.until("delta")
        process.send_signal(signal.SIGKILL)
        process.wait()
    llm.release()
    body = {"question": QUESTION}
    until(lambda: install.client.post("collections/shelf/ask", body).status == 200, 60, "it is lost")
    again = install.ask(QUESTION)
    assert (again["replayed"], again["answer"]) == (True, "The Eiffel Tower is 330 metres tall [1].")
    assert llm.totals().charges == 2
    assert install.client.get("bill").json["in_doubt"] > 0
    install.close()
