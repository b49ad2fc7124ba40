"""An installation whose embeddings and language model are one meter, and flows of its user."""

from pathlib import Path
from typing import Any
from urllib.request import urlopen

from holdfast.testing.meter import Meter
from tests.jobs.install import Author, JobsInstall

MODULE = """
import os
import time
from pathlib import Path


def shout(fields, settings):
    with Path(__file__).with_name("calls").open("a") as calls:
        calls.write(" ".join(fields) + "\\n")
    print("nothing that a function prints is an answer")
    return fields["text"].split()[0].upper() + settings.get("mark", "!")


def fails(fields, settings):
    raise ValueError("no " + fields["text"].split()[0])


def leaves(fields, settings):
    raise SystemExit(3)


def strange(fields, settings):
    return {"object": object(), "nan": float("nan"), "long": "x" * 100_000, "deep": deep()}[settings["what"]]


def deep():
    value = []
    for _ in range(100_000):
        value = [value]
    return value


def odd(fields, settings):
    return {"a\\x00": "b\\x00\\ud800", "whole": [1, None, True, 0.5]}


def hangs(fields, settings):
    time.sleep(600)


def eats(fields, settings):
    return len(bytearray(10 ** 10))


def dies(fields, settings):
    os.kill(os.getpid(), 9)
"""
FUNCTIONS = tuple(
    f"harbour_steps:{name}"
    for name in ("shout", "fails", "leaves", "strange", "odd", "hangs", "eats", "dies", "missing")
)
GIST = 'enrich: {name: gist, prompt: "Say it in a sentence.", max_tokens: 40}'
TERMS = (
    "extract: {name: terms, schema: {type: object, required: [topic], properties: {topic: {type: string}}}}"
)


def flow(*steps: str, name: str = "contracts", version: int = 1) -> str:
    """The text of a flow with these steps; a step may have several lines."""
    listed = "".join("  - " + step.replace("\n", "\n    ") + "\n" for step in steps)
    return f"flow: {name}\nversion: {version}\nsteps:\n{listed}"


def say(messages: Any) -> Any:
    """A model that answers with what it was asked about."""
    text = str(messages[-1]["content"])
    if "JSON Schema" in str(messages[0]["content"]):
        return {"topic": f"topic of {text.split(maxsplit=1)[0]}"}
    return f"gist of {' '.join(text.split()[:3])}"


class FlowsInstall(JobsInstall):
    """An installation with flows."""

    def __init__(self, url: str, folder: Path, meter: Meter, author: Author, **more: Any) -> None:
        embedding = {
            "embedding_provider": "openai",
            "embedding_base_url": meter.base_url,
            "embedding_model": "text-embedding-3-small",
            "embedding_key_retention": 86_400.0,
            "llm_model": "gpt-4o-mini",
        }
        super().__init__(url, folder, meter, author, **embedding | {"flow_functions": FUNCTIONS} | more)
        author.say = say

    def apply(self, source: str, to: str | None = None, **more: Any) -> Any:
        """The flow is applied, and the collection takes it; nobody works on it yet."""
        response = self.client.post("flows", {"source": source})
        assert response.status in {200, 201}, response.raw
        if to is not None:
            self.client.collection(to)
            options = {"options": {"flow": response.json["id"]}, **more}
            changed = self.client.call("PATCH", f"collections/{to}", options)
            assert changed.status == 200, changed.raw
        return response.json

    def page(self, path: str) -> str:
        """The HTML of a page."""
        with urlopen(f"http://127.0.0.1:{self.port}{path}") as response:
            text: str = response.read().decode()
        return text

    def charged(self) -> dict[str, int]:
        """How many inputs the provider charged for, by endpoint."""
        counts: dict[str, int] = {}
        for entry in self.meter.log():
            if entry["charged"]:
                counts[entry["endpoint"]] = counts.get(entry["endpoint"], 0) + len(entry["inputs"])
        return counts

    def environment(self) -> dict[str, str]:
        """The settings of the installation, for a command."""
        names = ("embedding_provider", "embedding_base_url", "embedding_model")
        names += ("llm_provider", "llm_base_url", "llm_model")
        values = {name: str(getattr(self.settings, name)) for name in names}
        values |= {"data_dir": str(self.settings.data_dir)}
        values |= {"database_url": self.settings.database_url.get_secret_value()}
        return {f"HOLDFAST_{name.upper()}": value for name, value in values.items()}

    def chunks(self, document_id: str) -> list[Any]:
        """The chunks of a document with their fields."""
        return self.client.get(f"documents/{document_id}/chunks?limit=500").json["chunks"]
