"""The names of a knowledge graph in memory: entities by how often they are mentioned, reports by level.

What a generation holds does not change, so its names are kept by generation. What somebody may see of it is
worked out for every answer from the documents it was made of: usually all of them, and that is one statement.
"""

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.search import letter_folding
from holdfast.store.base.database import Tx
from holdfast.store.derived import graphs
from holdfast.store.derived.graphs import ENTITY, RELATION, REPORT, GraphRows, ListedNode
from holdfast.store.derived.trees import TreeHead, TreeReader

# Names of all graphs together that a process keeps.
MOST_KEPT = 300_000
NO_LETTERS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class EntityName:
    """An entity as it is listed. `x` and `y` are its position in the picture, 0 to 1."""

    key: str
    title: str
    kind: str
    names: tuple[str, ...]
    mentions: int
    community: str | None
    x: float
    y: float
    stand_in: bool
    # Every word of its names, folded, with a space before it.
    folded: str
    # Each of its names, folded.
    phrases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReportName:
    """A report on a community as it is listed; `size` is how many entities the community has."""

    key: str
    title: str
    level: int
    parent: str | None
    size: int
    stand_in: bool


@dataclass(frozen=True, slots=True)
class GraphCatalogue:
    """The names of one generation: the most mentioned entity, and the report of the highest level, first."""

    entities: tuple[EntityName, ...]
    reports: tuple[ReportName, ...]
    by_key: Mapping[str, EntityName | ReportName]
    counts: Mapping[str, int]
    # How many entities of each kind there are, the most frequent first.
    by_kind: Mapping[str, int]
    documents: Mapping[str, frozenset[int]]
    stand_in: bool

    def entity(self, key: str) -> EntityName | None:
        """The entity with this key."""
        named = self.by_key.get(key)
        return named if isinstance(named, EntityName) else None

    def matching(self, text: str, kind: str | None) -> list[EntityName]:
        """The entities that have every word of the text, or its beginning, in their names; whole names first.

        All of them if there is no text. `kind` leaves only entities of that kind.
        """
        words = folded(text).split()
        some = [each for each in self.entities if kind is None or each.kind == kind]
        if not words:
            return some
        # Where there are no spaces between words, one may begin anywhere.
        parts = [word if letter_folding.UNSPACED.search(word) else f" {word}" for word in words]
        for part in parts:
            some = [each for each in some if part in each.folded]
        whole = " ".join(words)
        return sorted(some, key=lambda each: whole not in each.phrases)

    def kinds(self, withheld: frozenset[str]) -> Mapping[str, int]:
        """How many entities of each kind are not withheld, the most frequent kind first."""
        if not withheld:
            return self.by_kind
        return _by_kind(each for each in self.entities if each.key not in withheld)


def _by_kind(entities: Iterable[EntityName]) -> dict[str, int]:
    counts = Counter(each.kind for each in entities)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def folded(text: str) -> str:
    """A name without case, accents and punctuation: words with one space between them."""
    return NO_LETTERS.sub(" ", letter_folding.fold(text[:1000])).strip()


@dataclass(frozen=True, slots=True)
class GraphView:
    """A generation of a graph as one reader sees it now; `withheld` are the keys that are not shown."""

    head: TreeHead
    reader: TreeReader
    catalogue: GraphCatalogue
    withheld: frozenset[str]
    stale: bool

    def shows(self, key: str) -> bool:
        """True if this entity, relation or report may be shown."""
        return key not in self.withheld


class GraphCatalogues:
    """The catalogues that this process has read; shared by its threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, int], GraphCatalogue] = OrderedDict()
        self._lock = threading.Lock()
        # Held while a catalogue is read, so that those who come at the same time read it once.
        self._reading = threading.Lock()

    def view(self, tx: Tx, reader: TreeReader) -> GraphView | None:
        """The published graph of the collection; None if there is none."""
        head = reader.head(tx, f"collection:{reader.collection}")
        if head is None:
            return None
        catalogue = self._catalogue(tx, head)
        view, dropped = _view(tx, reader, head, catalogue)
        if dropped:
            # The nodes of a deleted document were deleted since: what is kept has too many names.
            catalogue = self._catalogue(tx, head, again=True)
            view, _ = _view(tx, reader, head, catalogue)
        return view

    def _catalogue(self, tx: Tx, head: TreeHead, *, again: bool = False) -> GraphCatalogue:
        name = (head.head_id, head.generation)
        if not again and (known := self._known_by(name)) is not None:
            return known
        with self._reading:
            if not again and (known := self._known_by(name)) is not None:
                return known
            catalogue = _catalogue(graphs.listed(tx, head))
            self._keep(name, catalogue)
        return catalogue

    def _known_by(self, name: tuple[int, int]) -> GraphCatalogue | None:
        with self._lock:
            known = self._known.get(name)
            if known is not None:
                self._known.move_to_end(name)
            return known

    def _keep(self, name: tuple[int, int], catalogue: GraphCatalogue) -> None:
        with self._lock:
            for old in [each for each in self._known if each[0] == name[0]]:
                del self._known[old]
            self._known[name] = catalogue
            while len(self._known) > 1 and sum(len(each.by_key) for each in self._known.values()) > MOST_KEPT:
                self._known.popitem(last=False)


def _view(
    tx: Tx, reader: TreeReader, head: TreeHead, catalogue: GraphCatalogue
) -> tuple[GraphView, frozenset[str]]:
    """What the reader sees, and which documents have left the graph since the catalogue was read."""
    seen = graphs.sources_seen(tx, reader, list(catalogue.documents))
    gone = [each for each in catalogue.documents if each not in seen]
    stale = any(catalogue.documents[name] != {version} for name, version in seen.items())
    withheld: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    if gone:
        pairs = graphs.nodes_of(tx, reader.tenant, head, gone)
        withheld = frozenset(node for _, node in pairs)
        dropped = frozenset(gone) - {document for document, _ in pairs}
    return GraphView(head, reader, catalogue, withheld, stale), dropped


def visible_counts(tx: Tx, view: GraphView) -> dict[str, int]:
    """How many entities, relations and reports the reader sees."""
    counts = {name: view.catalogue.counts.get(name, 0) for name in (ENTITY, RELATION, REPORT)}
    if not view.withheld:
        return counts
    by_key = view.catalogue.by_key
    entities = [key for key in view.withheld if isinstance(by_key.get(key), EntityName)]
    reports = [key for key in view.withheld if isinstance(by_key.get(key), ReportName)]
    relations = {key for key in view.withheld if key not in by_key}
    relations |= {edge.node for edge in graphs.edges_of(tx, view.head, entities)}
    counts[ENTITY] -= len(entities)
    counts[REPORT] -= len(reports)
    counts[RELATION] = max(0, counts[RELATION] - len(relations))
    return counts


def _catalogue(rows: GraphRows) -> GraphCatalogue:
    entities = sorted(
        (_entity(each) for each in rows.nodes if each.type == ENTITY),
        key=lambda each: (-each.mentions, each.title, each.key),
    )
    reports = sorted(
        (_report(each) for each in rows.nodes if each.type == REPORT),
        key=lambda each: (-each.level, -each.size, each.title, each.key),
    )
    documents: dict[str, set[int]] = {}
    for document, version in rows.documents:
        documents.setdefault(document, set()).add(version)
    by_key: dict[str, EntityName | ReportName] = {each.key: each for each in entities}
    by_key |= {each.key: each for each in reports}
    return GraphCatalogue(
        tuple(entities),
        tuple(reports),
        by_key,
        rows.counts,
        _by_kind(entities),
        {name: frozenset(versions) for name, versions in documents.items()},
        any(each.stand_in for each in by_key.values()),
    )


def _entity(node: ListedNode) -> EntityName:
    names = tuple(str(each) for each in node.data.get("names") or ())
    phrases = tuple(dict.fromkeys(folded(name) for name in (node.title, *names)))
    words = dict.fromkeys(word for name in phrases for word in name.split())
    return EntityName(
        node.key,
        node.title,
        str(node.data.get("kind") or "other"),
        names,
        int(_number(node.data.get("mentions"))),
        node.parent,
        _within(node.data.get("x")),
        _within(node.data.get("y")),
        bool(node.data.get("stand_in")),
        "".join(f" {word}" for word in words),
        phrases,
    )


def _report(node: ListedNode) -> ReportName:
    size = int(_number(node.data.get("size")))
    return ReportName(node.key, node.title, node.level, node.parent, size, bool(node.data.get("stand_in")))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _within(value: Any) -> float:
    return min(1.0, max(0.0, _number(value))) if isinstance(value, int | float) else 0.5


def entities_below(catalogue: GraphCatalogue, community: str) -> list[EntityName]:
    """The entities of a community, and of the communities below it; the most mentioned first."""
    below: set[str] = {community}
    for each in catalogue.reports:  # the highest level first, so that one pass is enough
        if each.parent in below:
            below.add(each.key)
    return [each for each in catalogue.entities if each.community in below]


def page_of(
    entries: Sequence[EntityName] | Sequence[ReportName], withheld: frozenset[str], begin: int, limit: int
) -> tuple[list[str], int | None]:
    """The keys of at most `limit` entries from an index on that are shown, and where the next page begins."""
    keys: list[str] = []
    for at in range(begin, len(entries)):
        if entries[at].key in withheld:
            continue
        if len(keys) == limit:
            return keys, at
        keys.append(entries[at].key)
    return keys, None
