"""The API on a real port with a metered model behind it, and an author who answers for the model."""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from holdfast import bootstrap
from holdfast.store.base.schema import job_results
from holdfast.store.protocol import prune
from holdfast.testing.meter import Meter
from tests.api.install import ApiInstall, Client

FINAL = {"success", "failed", "cancelled", "superseded"}


class Author:
    """What the model says. By default: as many questions about a passage as it was asked for."""

    def __init__(self) -> None:
        self.say: Any = self.pairs
        self.heard: list[list[Mapping[str, Any]]] = []
        self._lock = threading.Lock()

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> str:
        with self._lock:
            self.heard.append(list(messages))
        said = self.say(messages)
        return said if isinstance(said, str) else json.dumps(said)

    @staticmethod
    def passage(messages: Sequence[Mapping[str, Any]]) -> str:
        return str(messages[1]["content"])

    def pairs(self, messages: Sequence[Mapping[str, Any]]) -> Any:
        count = int(re.search(r"up to (\d+)", str(messages[0]["content"]))[1])  # type: ignore[index]
        about = self.passage(messages)
        return {
            "pairs": [
                {"question": f"What is {number} of “{about[:60]}”?", "answer": about}
                for number in range(count)
            ]
        }


class JobsInstall(ApiInstall):
    """An installation whose language model is a meter."""

    def __init__(self, url: str, folder: Path, meter: Meter, author: Author, **more: Any) -> None:
        self.meter, self.author = meter, author
        keys = 86_400.0 if meter.honour_keys else 0.0
        model = {"llm_provider": "openai", "llm_base_url": meter.base_url, "llm_key_retention": keys}
        super().__init__(url, folder, **model | more)

    @property
    def paid(self) -> int:
        """How many calls the provider charged for, by its own book."""
        return self.meter.totals().charges

    def shelf(self, *texts: str, to: str = "shelf") -> list[Any]:
        """Documents of these texts, published."""
        items = [self.client.text(text, to=to, title=f"Text {n}") for n, text in enumerate(texts)]
        self.work()
        return [self.client.get(f"documents/{each['id']}").json for each in items]

    def estimate(self, kind: str, **params: Any) -> Any:
        """What a job over the shelf would cost."""
        return bootstrap.AppServices(self.runtime).estimates().of_job("default", "shelf", kind, params)

    def tidy(self) -> None:
        """What is superfluous is gone."""
        for _ in range(3):
            prune.prune_generations(self.runtime.db)


def ask(client: Client, kind: str = "qa", *, to: str = "collections/shelf", **params: Any) -> Any:
    """What became of a request for a job."""
    more = {
        name: params.pop(name)
        for name in ("mode", "lane", "callback", "priority", "wait_for_ready")
        if name in params
    }
    headers = params.pop("headers", None)
    return client.post(f"{to}/jobs", {"kind": kind, "params": params, **more}, headers=headers)


def done(install: JobsInstall, kind: str = "qa", **params: Any) -> Any:
    """The job, carried out to its end, with its results."""
    said = ask(install.client, kind, **params)
    assert said.status == 202, said.raw
    install.work()
    return job(install.client, said.json["job_id"])


def job(client: Client, job_id: str) -> Any:
    """The job as it stands, with its counters."""
    body = client.get(f"jobs/{job_id}").json
    return {**body["job"], "counters": body["counters"]}


def results(client: Client, job_id: str, limit: int = 500) -> list[Any]:
    """All results of a job, page by page."""
    items: list[Any] = []
    cursor = ""
    while True:
        page = client.get(f"jobs/{job_id}/results?limit={limit}{cursor}").json
        items += page["results"]
        if page["next"] is None:
            return items
        cursor = f"&cursor={page['next']}"


def chunks(client: Client, document_id: str) -> list[str]:
    """The texts of a document's chunks, in order."""
    return [one["text"] for one in client.get(f"documents/{document_id}/chunks?limit=500").json["chunks"]]


def paragraphs(name: str, count: int) -> str:
    """A text of so many chunks: each paragraph fills most of one."""
    return "\n\n".join(
        f"{name} paragraph {number} " + " ".join(f"{name}{number}word{n}" for n in range(60))
        for number in range(count)
    )


def kept_rows(install: JobsInstall) -> int:
    """How many results are in the table, whoever may read them."""
    count = select(func.count()).select_from(job_results)
    return install.runtime.db.read(lambda tx: tx.execute(count).scalar_one())
