"""A made-up corpus of related Markdown documents, the same for the same seed, and edits of it."""

import random
from dataclasses import dataclass, field

SYLLABLES = [a + b for a in "bdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
TOPICS = 12
SECTIONS = 7


def _words(seed: str, count: int) -> list[str]:
    chance = random.Random(seed)  # noqa: S311 - texts, not secrets
    return ["".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))) for _ in range(count)]


COMMON = _words("common", 400)
OWN = {topic: _words(f"topic {topic}", 150) for topic in range(TOPICS)}


@dataclass
class SampleDocument:
    """A document as a list of paragraphs, each a list of sentences."""

    name: str
    topic: int
    paragraphs: list[list[str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The document as Markdown."""
        blocks = [f"# {self.name}"]
        for number, sentences in enumerate(self.paragraphs):
            if number % 3 == 0:
                blocks.append(f"## {' '.join(sentences[0].split()[:3])}")
            blocks.append(" ".join(sentences))
        return "\n\n".join(blocks) + "\n"


class SampleCorpus:
    """Documents around a dozen topics, and the chance that edits them."""

    def __init__(self, documents: int = 100, seed: int = 15) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - texts, not secrets
        self.documents = [self.document(number) for number in range(documents)]

    def document(self, number: int) -> SampleDocument:
        """A new document of about nineteen chunks."""
        topic = self.chance.randrange(TOPICS)
        own = SampleDocument(f"Document {number}", topic)
        for _ in range(self.chance.randint(14, 24)):
            own.paragraphs.append(self.paragraph(topic))
        return own

    def paragraph(self, topic: int) -> list[str]:
        """A paragraph that fills most of a chunk."""
        local = self.chance.sample(OWN[topic], 12)
        return [self.sentence(topic, local) for _ in range(self.chance.randint(7, 10))]

    def sentence(self, topic: int, local: list[str] | None = None) -> str:
        """A sentence with the words of its topic, and of its paragraph."""
        words = [
            self.chance.choice(local or OWN[topic])
            if self.chance.random() < 0.5
            else self.chance.choice(COMMON)
            for _ in range(self.chance.randint(9, 14))
        ]
        return f"{' '.join(words).capitalize()}."
