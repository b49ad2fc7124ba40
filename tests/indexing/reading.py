"""A reader that never stops looking, and remembers everything that was not one whole generation."""

import threading
from collections import Counter

from holdfast.search.searcher import Searcher
from holdfast.store.features import open_database
from holdfast.store.views import reads

PAUSE = 0.005  # so that those who work get a turn


class Reader:
    """Reads a document over and over, by its chunks and by search, while others work on it.

    `whole` are the texts of each generation that may ever be seen, known beforehand. From the first look on
    something must be there. It has a connection of its own.
    """

    def __init__(self, url, head_id, whole, collection="shelf", words="plain book", tenant="default"):
        self._db = open_database(url, pool_size=2)
        self._searcher = Searcher(self._db)
        self._head_id, self._words = head_id, words
        self._where = (tenant, collection)
        self.whole = {1: whole}
        self.looks = Counter()
        self.faults = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="reader")

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        self._db.close()

    def _go_on(self):
        while not self._over.wait(PAUSE):
            try:
                self._look()
                self._search()
            except Exception as error:  # noqa: BLE001  a reader that is refused is a fault, too
                self.faults.append(repr(error))
                return

    def _look(self):
        seen = reads.visible_chunks(self._db, self._head_id, limit=100_000)
        if seen is None:
            self.faults.append("nothing is published")
            return
        texts = [one.chunk.text for one in seen.chunks]
        self._judge("chunks", seen.generation, texts == self.whole.get(seen.generation))

    def _search(self):
        hits = self._searcher.search(*self._where, self._words, k=200, mode="keyword").hits
        generations = {hit.generation for hit in hits}
        if len(generations) != 1:
            self.faults.append(f"a search found generations {generations}")
            return
        (generation,) = generations
        known = self.whole.get(generation, [])
        result = {hit.text for hit in hits}
        whole = result == set(known) if len(known) <= 100 else result <= set(known) and len(result) >= 100
        self._judge("search", generation, whole)

    def _judge(self, how, generation, whole):
        self.looks[how, generation] += 1
        if not whole:
            self.faults.append(f"{how}: generation {generation} was not whole")

    def saw(self, generation):
        """How often it saw this generation, whole."""
        return self.looks["chunks", generation] + self.looks["search", generation]
