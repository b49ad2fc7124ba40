"""A small world to look at: papers of a harbour, in every state that a page can show."""

import json
import random
import re
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from sqlalchemy import select, update

from holdfast.chaos.waiting import until
from holdfast.store.base.database import Database
from holdfast.store.base.schema import charges, tasks
from tests.api.install import form
from tests.documents import pdfs
from tests.page.browser_user import SECONDS, Api

SAMPLE = Path(__file__).parents[2] / "src/holdfast/cli/sample"
THINGS = (
    *("mooring line", "tide gauge", "pilot boat", "crane", "fog signal"),
    *("container", "berth", "harbour master", "lamp", "log"),
)
SAYS = (
    "The {0} is looked at before each watch, and what was found is entered beside the {1}.",
    "Whoever moves the {0} signs for it; a second request for the same {0} is told who has it.",
    "In fog the {0} stays where it is until the {1} has been heard twice.",
    "A {0} that was paid for once is not paid for again, whoever asks for it.",
    "When the power fails the {0} is in doubt: nobody touches it before the {1} was read.",
    "The {0} of the northern quay was replaced in {2}, together with its {1}.",
)


def prose(seed: str, paragraphs: int) -> str:
    """A text about a harbour that is always the same for the same seed, and like no other."""
    draw = random.Random(seed)
    items = []
    for number in range(paragraphs):
        said = [
            draw.choice(SAYS).format(*draw.sample(THINGS, 2), draw.randint(1950, 2025))
            for _ in range(draw.randint(3, 6))
        ]
        items.append(f"Entry {number + 1} of {seed}. {' '.join(said)}")
    return "\n\n".join(items)


def answers(messages: Sequence[Mapping[str, Any]]) -> str:
    """What the language model of this world says to a passage: questions, or fields."""
    output = str(messages[-1]["content"])
    system = str(messages[0]["content"])
    if "pairs" not in system and "JSON" not in system:
        return "It tells how the harbour is kept: who signs for a lift, what is in doubt, and who is told."
    if "pairs" not in system:
        year = re.search(r"\b(19|20)\d\d\b", output)
        thing = next((each for each in THINGS if each in output), "log")
        return json.dumps({"subject": thing, "year": int(year[0]) if year else None, "checked": bool(year)})
    sentence = re.findall(r"The [a-z ]+ is [^.\\]+\.", output)
    said = sentence[0] if sentence else "It is entered in the log."
    thing = next((each for each in THINGS if each in said), "log")
    pair = {"question": f"What does the handbook say about the {thing}?", "answer": said}
    return json.dumps({"pairs": [pair]})


class World:
    """The collections of an installation, and what is done to them."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.names: dict[str, str] = {}

    def upload(self, collection: str, name: str, content: bytes) -> str:
        """The id of a document made of a file."""
        boundary = secrets.token_hex(8)
        request = Request(
            f"{self.api.address}/api/v1/collections/{collection}/documents",
            form(boundary, content, name, {}),
            {"Content-Type": f"multipart/form-data; boundary={boundary}"},
        )
        with urlopen(request, timeout=SECONDS) as answer:
            return str(json.loads(answer.read())["document"]["id"])

    def refused(self, method: str, path: str, body: Any = None) -> None:
        """The API refuses it."""
        try:
            self.api.call(method, path, body)
        except HTTPError as error:
            error.close()
            return
        raise AssertionError(f"{path} was not refused")

    def ended(self, *names: str) -> None:
        """None of the documents is under way."""
        for name in names:
            until(
                lambda name=name: self.api.document(name)["index_status"] in {"success", "failed"},
                60,
                "it does not end",
            )

    def library(self) -> None:
        """Collections with documents that are done, changed once, and failed."""
        for name, title in (
            ("harbour", "Harbour papers"),
            ("contracts", "Contracts"),
            ("tickets", "Support tickets"),
        ):
            self.api.call("POST", "collections", {"id": name, "title": title})
        items = [self.upload("harbour", each.name, each.read_bytes()) for each in sorted(SAMPLE.iterdir())]
        pages = [prose(f"page {n}", 4).replace(". ", ".\n") for n in range(1, 31)]
        self.names["rules"] = self.upload(
            "harbour", "Pilot rules 2026.pdf", pdfs.make(pages, title="Pilot rules 2026")
        )
        self.names["scan"] = self.upload("harbour", "Chart of the northern quay.pdf", pdfs.scan(3))
        for number in range(1, 4):
            text = prose(f"the Albatross, volume {number}", 60)
            items.append(self.api.text("harbour", f"Logbook of the Albatross, volume {number}", text))
        items += [
            self.api.text("contracts", f"Berth contract {2020 + number}", prose(f"contract {number}", 12))
            for number in range(6)
        ]
        items += [
            self.api.text("tickets", f"Ticket {4711 + number}", prose(f"ticket {number}", 3))
            for number in range(4)
        ]
        self.ended(*items, *self.names.values())
        self.names["log"] = items[5]

    def changed(self) -> None:
        """One paragraph of the rules is new; a text was indexed again though nothing changed."""
        text = prose("the Albatross, volume 1", 60) + "\n\nThe tide gauge was found broken on 4 March."
        self.api.call("PUT", f"documents/{self.names['log']}/content", {"text": text})
        self.ended(self.names["log"])
        self.api.call("POST", f"documents/{self.names['log']}/index", {"mode": "force"})
        self.ended(self.names["log"])

    def jobs(self) -> None:
        """A job of each sort has ended."""
        fields = {"subject": "string", "year": "integer", "checked": "boolean"}
        schema = {
            "type": "object",
            "properties": {name: {"type": type_name} for name, type_name in fields.items()},
        }
        for kind, params in (("qa", {"limit": 12}), ("extract", {"schema": schema})):
            said = self.api.call("POST", "collections/harbour/jobs", {"kind": kind, "params": params})
            self.names[kind] = said["job_id"]
            until(
                lambda name=said["job_id"]: self.api.get(f"jobs/{name}")["job"]["state"] == "success",
                60,
                "the job does not end",
            )

    def hooks(self, url: str) -> None:
        """Actions of three sorts have ended; the address of a webhook has answered, another refuses."""
        for type_name, name, params in (
            (
                "prompt",
                "Abstract",
                {"instruction": "Sum this up in three sentences, for the harbour master."},
            ),
            (
                "extract",
                "",
                {
                    "schema": {
                        "type": "object",
                        "properties": {"subject": {"type": "string"}, "year": {"type": "integer"}},
                    }
                },
            ),
            ("webhook", "Ledger of the harbour", {"url": url}),
        ):
            said = self.api.call(
                "POST", "collections/contracts/actions", {"sort": type_name, "name": name, "params": params}
            )
            self.names[f"action {type_name}"] = said["action"]["id"]
        self.api.call("POST", f"collections/contracts/actions/{self.names['action webhook']}/test")

        def ended() -> bool:
            response = self.api.get("collections/contracts/actions")["actions"]
            sent = self.api.get("deliveries")["deliveries"]
            return all(one["done"] + one["failed"] == 6 for one in response) and all(
                one["state"] == "delivered" for one in sent
            )

        until(ended, 90, "the actions do not end", every=0.2)

    def spread(self, db: Database) -> None:
        """What was paid and saved happened over four weeks, and not within the last minute."""
        draw = random.Random(1)

        def body(tx: Any) -> None:
            for table, column in ((charges, charges.c.at), (tasks, tasks.c.signed_at)):
                for row in tx.connection.execute(select(table.c.id)).all():
                    days = min(27, int(draw.expovariate(0.12)))
                    tx.connection.execute(
                        update(table).where(table.c.id == row.id).values({column: column - days * 86_400.0})
                    )

        db.write("spread", body)
