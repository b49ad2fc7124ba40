"""The graph of a run, put together from what its windows said: entities, relations, communities, positions.

It is a pure function of the windows, of the names that mean the same and of the communities of last time.
Every slice of the later phases puts the same graph together and does its own part of it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from holdfast.kinds import communities, graph_layout, graph_names
from holdfast.kinds.communities import Community
from holdfast.kinds.graph_answers import Extraction
from holdfast.kinds.graph_layout import Position
from holdfast.kinds.neighbour_groups import digest
from holdfast.store.derived.inputs import StoredState
from holdfast.store.derived.staging import NodeSourceDraft

# Of one entity or relation: what is described by more is described by those whose digests come first.
MOST_FRAGMENTS = 64
MOST_NAMES = 20
UNKNOWN = "other"

Embedder = tuple[str, str]


@dataclass(frozen=True, slots=True)
class WindowMentions:
    """What one window of a version of a document said, with the numbers of the chunks of each item."""

    document: str
    version: int
    extraction: Extraction
    entity_chunks: Sequence[Sequence[int]]
    relation_chunks: Sequence[Sequence[int]]
    embedder: Embedder | None = None

    def as_json(self) -> dict[str, Any]:
        """As it is staged."""
        return {
            "document": self.document,
            "version": self.version,
            "by": None if self.embedder is None else list(self.embedder),
            **self.extraction.as_json(),
            "entity_chunks": [list(each) for each in self.entity_chunks],
            "relation_chunks": [list(each) for each in self.relation_chunks],
        }

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> "WindowMentions":
        """As it was staged."""
        by = data["by"]
        return cls(
            data["document"],
            data["version"],
            Extraction.of_json(data),
            data["entity_chunks"],
            data["relation_chunks"],
            None if by is None else (by[0], by[1]),
        )


def mentions(
    extraction: Extraction, document: str, version: int, chunks: Mapping[int, str], embedder: Embedder | None
) -> WindowMentions:
    """What was found in a window, each item with the chunks that have its names; with all if none has."""
    folded = {number: text.casefold() for number, text in chunks.items()}
    seen: dict[str, frozenset[int]] = {}

    def where(name: str) -> frozenset[int]:
        if name not in seen:
            small = name.casefold()
            seen[name] = frozenset(number for number, text in folded.items() if small in text)
        return seen[name]

    every = frozenset(chunks)
    entities = [sorted(where(each.name) or every) for each in extraction.entities]
    relations = []
    for each in extraction.relations:
        source, target = where(each.source), where(each.target)
        relations.append(sorted((source & target) or (source | target) or every))
    return WindowMentions(document, version, extraction, entities, relations, embedder)


@dataclass(slots=True)
class Subject:
    """What an entity and a relation have in common: texts that describe it, and where these are from."""

    texts: set[str] = field(default_factory=set)
    chunks: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    embedders: Counter[Embedder] = field(default_factory=Counter)

    def add(self, window: WindowMentions, numbers: Iterable[int], text: str) -> None:
        """One more mention."""
        if text:
            self.texts.add(text)
        self.chunks.setdefault((window.document, window.version), set()).update(numbers)
        if window.embedder is not None:
            self.embedders[window.embedder] += 1

    @property
    def fragments(self) -> list[str]:
        """The texts in canonical order, no more than so many."""
        return sorted(self.texts, key=digest)[:MOST_FRAGMENTS]

    @property
    def sources(self) -> list[NodeSourceDraft]:
        """The chunks, neighbours as one range."""
        ranges: list[NodeSourceDraft] = []
        for (document, version), numbers in sorted(self.chunks.items()):
            for number in sorted(numbers):
                last = ranges[-1] if ranges else None
                if last and (last.document, last.version, last.last) == (document, version, number - 1):
                    ranges[-1] = NodeSourceDraft(document, version, last.first, number)
                else:
                    ranges.append(NodeSourceDraft(document, version, number, number))
        return ranges

    @property
    def embedder(self) -> Embedder | None:
        """Who embedded most of its chunks."""
        if not self.embedders:
            return None
        return min(self.embedders, key=lambda each: (-self.embedders[each], each))


@dataclass(slots=True)
class Entity(Subject):
    """A person, a place, a thing, under all of its names."""

    key: str = ""
    spellings: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)

    @property
    def title(self) -> str:
        """Its usual name."""
        return graph_names.most_common(self.spellings)

    @property
    def names(self) -> list[str]:
        """Its other names."""
        return sorted(name for name in self.spellings if name != self.title)[:MOST_NAMES]

    @property
    def type(self) -> str:
        """What most windows say that it is."""
        return graph_names.most_common(self.types) or UNKNOWN

    @property
    def mentions(self) -> int:
        """In how many chunks it is mentioned."""
        return sum(map(len, self.chunks.values()))


@dataclass(slots=True)
class Relation(Subject):
    """What connects two entities. Its ends are in the order in which most windows have them."""

    key: str = ""
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)

    @property
    def pair(self) -> tuple[str, str]:
        """The keys of its entities."""
        return min(self.ends, key=lambda each: (-self.ends[each], each))

    @property
    def label(self) -> str:
        """A few words for it."""
        return graph_names.most_common(self.labels)

    @property
    def weight(self) -> int:
        """How many windows say it."""
        return sum(self.ends.values())


class Assembly:
    """The graph. Communities and positions are worked out when they are asked for."""

    def __init__(
        self,
        windows: Iterable[WindowMentions],
        same: Iterable[Sequence[str]] = (),
        stored: Callable[[], Mapping[int, Mapping[str, str]]] = dict,
    ) -> None:
        self._stored = stored
        listed = list(windows)
        spellings = {name for window in listed for name in _names(window.extraction)}
        self._names = {graph_names.normalised(name) for name in spellings} - {""}
        self._keys: dict[str, str | None] = {}
        self._standing = graph_names.merged(self._names, same)
        self.entities: dict[str, Entity] = {}
        self.relations: dict[str, Relation] = {}
        for window in listed:
            self._take(window)
        self._describe_unmentioned()
        self.entity_keys = sorted(self.entities)
        self.relation_keys = sorted(self.relations)

    def _describe_unmentioned(self) -> None:
        """An entity that is only named in relations is described by what these say."""
        bare = {key for key, entity in self.entities.items() if not entity.texts}
        for relation in self.relations.values():
            for key in bare.intersection(relation.pair):
                self.entities[key].texts |= relation.texts

    def _take(self, window: WindowMentions) -> None:
        pairs = zip(window.extraction.entities, window.entity_chunks, strict=True)
        for mention, numbers in pairs:
            entity = self._entity(mention.name)
            if entity is not None:
                entity.spellings[mention.name] += 1
                entity.add(window, numbers, mention.text)
                if mention.type:
                    entity.types[mention.type] += 1
        for said, numbers in zip(window.extraction.relations, window.relation_chunks, strict=True):
            source, target = self._entity(said.source), self._entity(said.target)
            if source is None or target is None or source is target:
                continue
            for entity, name in ((source, said.source), (target, said.target)):
                entity.add(window, numbers, "")
                if not entity.spellings:
                    entity.spellings[name] += 1
            key = relation_key(source.key, target.key)
            relation = self.relations.get(key)
            if relation is None:
                relation = self.relations[key] = Relation(key=key)
            relation.ends[source.key, target.key] += 1
            if said.relation:
                relation.labels[said.relation] += 1
            relation.add(window, numbers, said.text)

    def _entity(self, name: str) -> Entity | None:
        key = self._key(name)
        if key is None:
            return None
        entity = self.entities.get(key)
        if entity is None:
            entity = self.entities[key] = Entity(key=key)
        return entity

    def _key(self, name: str) -> str | None:
        """The key of the entity with this name; names come again and again, so it is remembered."""
        if name not in self._keys:
            normal = graph_names.normalised(name)
            self._keys[name] = graph_names.key_of(self._standing[normal]) if normal else None
        return self._keys[name]

    def lines_of(self, block: Sequence[str]) -> list[str]:
        """The names of a block with their types, as a model is asked about them."""
        entities = [self.entities[graph_names.key_of(self._standing[name])] for name in block]
        return sorted({f"{entity.title} ({entity.type})" for entity in entities})

    @property
    def blocks(self) -> list[list[str]]:
        """Names that may mean the same."""
        return graph_names.blocks(self._names)

    @property
    def edges(self) -> dict[tuple[str, str], float]:
        """The weights between entities."""
        return {(min(each.pair), max(each.pair)): float(each.weight) for each in self.relations.values()}

    @cached_property
    def communities(self) -> list[Community]:
        """The communities of all levels."""
        return communities.communities(self.entity_keys, self.edges, self._stored())

    @cached_property
    def inner(self) -> dict[str, list[str]]:
        """The keys of the relations inside of each community of level 1."""
        home = {item: each.name for each in self.communities if each.level == 1 for item in each.members}
        listed: dict[str, list[str]] = {}
        for key in self.relation_keys:
            source, target = self.relations[key].pair
            if home[source] == home[target]:
                listed.setdefault(home[source], []).append(key)
        return listed

    @cached_property
    def positions(self) -> dict[str, Position]:
        """Where everything is drawn."""
        return graph_layout.positions(self.communities)

    @cached_property
    def report_keys(self) -> dict[str, str]:
        """The key of each community's node: a digest of its members."""
        keys: dict[str, str] = {}
        for each in self.communities:
            members = sorted(keys.get(member, member) for member in each.members)
            keys[each.name] = digest("\n".join([f"report {each.level}", *members]))
        return keys

    @cached_property
    def _by_name(self) -> dict[str, Community]:
        return {each.name: each for each in self.communities}

    def entities_of(self, community: Community) -> list[str]:
        """The keys of all entities in a community, of whatever level."""
        keys: list[str] = []
        waiting = [community]
        while waiting:
            some = waiting.pop()
            if some.level == 1:
                keys += some.members
            else:
                waiting += [self._by_name[member] for member in some.members]
        return sorted(keys)

    def of_level(self, level: int) -> list[Community]:
        """The communities of a level, in canonical order."""
        return [each for each in self.communities if each.level == level]


def homes(states: Iterable[StoredState]) -> dict[str, str]:
    """What was in which community, as a level was stored."""
    return {member: each.name for each in states for member in each.data["members"]}


def relation_key(source: str, target: str) -> str:
    """The key of the relation of two entities, whichever is first."""
    return digest("\n".join(["relation", *sorted((source, target))]))


def _names(extraction: Extraction) -> Iterable[str]:
    yield from (each.name for each in extraction.entities)
    for each in extraction.relations:
        yield each.source
        yield each.target
