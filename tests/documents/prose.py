"""Prose for the tests of chunking: made from a seed, different everywhere, edited in known places."""

import random

WORDS = [
    *("the", "of", "a", "to", "in", "and", "paid", "once", "never", "lost", "publish", "slice", "page"),
    *("broker", "message", "charge", "order", "doubt", "retrieval", "document", "ledger", "anchor"),
    *("worker", "lease", "epoch", "fence", "generation", "search", "index", "chunk", "boundary"),
]


class Prose:
    """A source of sentences and paragraphs; the same seed gives the same ones."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def sentence(self):
        words = [self.random.choice(WORDS) for _ in range(self.random.randint(6, 24))]
        return " ".join(words).capitalize() + "."

    def paragraph(self):
        return " ".join(self.sentence() for _ in range(self.random.randint(2, 8)))

    def paragraphs(self, number):
        return [self.paragraph() for _ in range(number)]

    def chinese(self, length):
        letters = [
            self.random.choice("天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏") for _ in range(length)
        ]
        return "".join(letter + ("。" if self.random.random() < 0.05 else "") for letter in letters)
