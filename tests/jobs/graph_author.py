"""A model that reads as the stand-in does, and writes other words whenever it reads other words."""

import hashlib
import json

from holdfast.providers import cooccurrence

PEOPLE = (
    "Ann Archer",
    "Ben Baker",
    "Cora Cole",
    "Dan Drake",
    "Eva Ellis",
    "Finn Frost",
    "Gina Gold",
    "Hugo Hale",
)
PLACES = ("Port Alder", "Lake Birch", "Cedar Valley", "Mount Dogwood")


def story(name: str, sentences: int, seed: int = 0) -> str:
    """A text of named people and places, of about three sentences a chunk."""
    lines = []
    for number in range(sentences):
        person, other = PEOPLE[(number + seed) % 8], PEOPLE[(number * 3 + seed + 1) % 8]
        port = PLACES[(number // 2 + seed) % 4]
        filler = " ".join(
            f"{name}{'abcdefghij'[number % 10]}{'klmnopqrst'[number // 10]}{letter}"
            for letter in "uvwxyzabcdefgh"
        )
        lines.append(f"In {name} the keeper {person} met {other} at {port} where {filler}.")
    return "\n\n".join(" ".join(lines[at : at + 4]) for at in range(0, len(lines), 4))


def answer(messages):
    """What the model says: of a window what it names, of names nothing, of notes and members a summary."""
    instruction, text = str(messages[0]["content"]), str(messages[1]["content"])
    mark = hashlib.sha256(text.encode()).hexdigest()[:8]
    if instruction.startswith("List the entities"):
        return json.dumps(cooccurrence.graph(text))
    if instruction.startswith("Which of these names"):
        return json.dumps({"same": []})
    if instruction.startswith("Below are things"):
        names = [line.split(" (")[0] for line in text.split("\n\n", maxsplit=1)[0].splitlines()]
        findings = [{"text": f"Finding {mark}.", "cites": [names[0], "Nobody"]}]
        return json.dumps({"title": f"Report {mark}", "summary": f"About {mark}.", "findings": findings})
    return f"Description {mark}."
