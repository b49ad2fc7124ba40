"""A made-up corpus of documents that name people and things, the same for the same seed, and edits of it."""

import random
from dataclasses import dataclass, field

from bench.kinds.sample_corpus import COMMON, SYLLABLES

TOPICS = 12
NAMES_OF_TOPIC = 60
NAMES_OF_DOCUMENT = 12
NAMES_OF_ALL = 40


def _names(seed: str, count: int) -> list[str]:
    chance = random.Random(seed)  # noqa: S311 - texts, not secrets

    def word() -> str:
        return "".join(chance.choices(SYLLABLES, k=chance.randint(2, 3))).capitalize()

    return [f"{word()} {word()}" for _ in range(count)]


EVERYWHERE = _names("all", NAMES_OF_ALL)
OF_TOPIC = {topic: _names(f"names {topic}", NAMES_OF_TOPIC) for topic in range(TOPICS)}


@dataclass
class NamedDocument:
    """A document as a list of paragraphs, each a list of sentences, under headings that stay with them."""

    name: str
    topic: int
    own: list[str]
    paragraphs: list[list[str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The document as Markdown."""
        return "\n\n".join([f"# {self.name}", *(" ".join(each) for each in self.paragraphs)]) + "\n"


class NamedCorpus:
    """Documents around a dozen topics, each with names of its own, and the chance that edits them."""

    def __init__(self, documents: int = 100, seed: int = 15) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - texts, not secrets
        self.documents = [self.document(number) for number in range(documents)]

    def document(self, number: int) -> NamedDocument:
        """A new document of about nineteen chunks."""
        topic = self.chance.randrange(TOPICS)
        own = NamedDocument(
            f"document {number}", topic, _names(f"own {number} {self.chance.random()}", NAMES_OF_DOCUMENT)
        )
        own.paragraphs = [self.paragraph(own) for _ in range(self.chance.randint(14, 24))]
        return own

    def paragraph(self, document: NamedDocument) -> list[str]:
        """A paragraph about four names, one of which may be known everywhere."""
        cast = self.chance.sample(OF_TOPIC[document.topic], 2) + self.chance.sample(document.own, 2)
        if self.chance.random() < 0.3:
            cast[0] = self.chance.choice(EVERYWHERE)
        return [self.sentence(document, cast) for _ in range(self.chance.randint(7, 10))]

    def sentence(self, document: NamedDocument, cast: list[str] | None = None) -> str:
        """A sentence with two names in every second case, and common words around them."""
        words = [self.chance.choice(COMMON) for _ in range(self.chance.randint(9, 14))]
        if self.chance.random() < 0.5:
            names = cast or self.chance.sample([*OF_TOPIC[document.topic], *document.own], 2)
            first, second = self.chance.sample(names, 2)
            words[1:1], words[6:6] = [first], [second]
        return f"the {' '.join(words)}."
