"""An installation whose language model is the meter, with a few documents to ask about."""

import json
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing.meter import Meter
from tests.api.install import PREFIX, ApiInstall

ASK = f"{PREFIX}/collections/shelf/ask"
TOWER = "The Eiffel Tower is 330 metres tall. It was opened on 31 March 1889 in Paris."
LEASE = "The lease of the warehouse runs for five years. The rent is EUR 1,200 per month."


class ScriptedModel:
    """The meter as a language model: it says what a test wants, and keeps the prompts."""

    def __init__(self) -> None:
        self.says = "The Eiffel Tower is 330 metres tall [1]."
        self.prompts: list[str] = []

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> str:
        self.prompts.append(str(messages[-1]["content"]))
        return self.says


class AskInstall(ApiInstall):
    """An installation that answers questions."""

    def __init__(self, url: str, folder: Path, meter: Meter, model: ScriptedModel, **more: Any) -> None:
        self.meter, self.model = meter, model
        wire = {"llm_provider": "openai", "llm_base_url": meter.base_url, "llm_model": "gpt-4o-mini"}
        super().__init__(url, folder, **{**wire, **more})

    def filled(self) -> "AskInstall":
        """The same, with a document about a tower and one about a lease."""
        self.client.indexed(TOWER, title="Towers")
        self.client.indexed(LEASE, title="Lease")
        return self

    def ask(self, question: str, **more: Any) -> Any:
        """The answer to a question, as JSON."""
        response = self.client.post("collections/shelf/ask", {"question": question, **more})
        assert response.status == 200, response.raw
        return response.json

    def stream(self, question: str, **more: Any) -> "EventStream":
        """The answer to a question, as it comes."""
        events = EventStream(self.port, {"question": question, "stream": True, **more})
        self._undo.callback(events.hang_up)
        return events


class EventStream:
    """A client that reads events one by one, and may hang up."""

    def __init__(self, port: int, body: Mapping[str, Any], path: str = ASK) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=30)
        self._connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        self.response = self._connection.getresponse()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        while (line := self.response.readline()) != b"":
            if line.startswith(b"event: "):
                data = self.response.readline()
                yield line[7:].decode().strip(), json.loads(data.removeprefix(b"data: "))

    def until(self, name: str) -> Any:
        """The data of the next event of this name."""
        return next(data for event, data in self if event == name)

    def hang_up(self) -> None:
        """The client is gone."""
        self.response.close()
        self._connection.close()


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
def llm(model: ScriptedModel) -> Iterator[Meter]:
    with Meter(chat=model) as running:
        yield running


@pytest.fixture
def install(database_url: str, tmp_path: Path, llm: Meter, model: ScriptedModel) -> Iterator[AskInstall]:
    """An installation on each database."""
    installation = AskInstall(database_url, tmp_path / "data", llm, model)
    yield installation.filled()
    installation.close()


@pytest.fixture
def quick(sqlite_url: str, tmp_path: Path, llm: Meter, model: ScriptedModel) -> Iterator[AskInstall]:
    """The same on SQLite alone, for what no database decides."""
    installation = AskInstall(sqlite_url, tmp_path / "data", llm, model)
    yield installation.filled()
    installation.close()
