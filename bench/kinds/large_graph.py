"""A knowledge graph of any size in a collection, staged and published as the kind does it, without a model.

Entities have made-up names of two words and follow a power law: a few are mentioned often and have thousands
of relations, most have three. Communities have ten members, on three levels.
"""

import functools
import hashlib
import random
from collections.abc import Sequence

from holdfast.bootstrap import AppServices
from holdfast.core import decide
from holdfast.core.records import Ask, Spent
from holdfast.core.states import Lane
from holdfast.kinds import graph_layout
from holdfast.kinds.communities import Community
from holdfast.service.requests import RequestContext
from holdfast.service.uploads import Upload
from holdfast.store.base.database import Database
from holdfast.store.derived import staging
from holdfast.store.derived.staging import EdgeDraft, NodeDraft, NodeSourceDraft
from holdfast.store.protocol import claims, requests
from holdfast.store.protocol import tasks as fenced

TENANT, COLLECTION = "default", "large"
SYLLABLES = ("ba", "ko", "ri", "ten", "mol", "sa", "vik", "du", "lan", "por", "eth", "nim", "gar", "os")
KINDS = ("person", "organisation", "place", "product", "law")
GROUP = 10
RELATIONS = 3


def key(name: str) -> str:
    """The key of a node with this name."""
    return hashlib.sha256(name.lower().encode()).hexdigest()


def name_of(number: int) -> str:
    """The name of an entity: the same number has the same one everywhere."""
    chance = random.Random(number)  # noqa: S311 - repeatable, not secret
    first = "".join(chance.choice(SYLLABLES) for _ in range(2)).title()
    return f"{first} {''.join(chance.choice(SYLLABLES) for _ in range(2)).title()} {number}"


def build(services: AppServices, entities: int, documents: int) -> None:
    """The collection has this many documents, and a published graph of this many entities."""
    context = RequestContext(TENANT, "bench")
    services.collections.make(context, COLLECTION)
    uploads = [
        Upload(_text(number).encode(), f"{number}.md", f"Paper {number}") for number in range(documents)
    ]
    services.documents.add(context, COLLECTION, uploads)
    services.runtime.engine.work_off(most=1_000_000)
    listed = services.documents.walk(TENANT, COLLECTION)
    nodes, edges = rows([each.id for each in listed], entities)
    publish(services.runtime.db, nodes, edges)


def _text(number: int) -> str:
    return "\n\n".join(f"{name_of(number * 7 + part)} met {name_of(number + part)}." for part in range(5))


def rows(documents: Sequence[str], entities: int) -> tuple[list[NodeDraft], list[EdgeDraft]]:
    """The nodes and edges of a graph over these documents, each of which has version 1."""
    chance = random.Random(entities)  # noqa: S311 - repeatable, not secret
    names = [name_of(number) for number in range(entities)]
    communities = _communities(entities)
    at = graph_layout.positions(communities)
    nodes, edges = [], []
    for number, name in enumerate(names):
        x, y = at[str(number)]
        data = {"kind": KINDS[number % 5], "names": [], "mentions": 1 + 4 * entities // (number + 4)}
        sources = _sources(documents, number, 1 + min(8, entities // (number + 1) // 50))
        text = f"{name} is described in a sentence or two, as a model would have written it."
        nodes.append(NodeDraft(key(name), "entity", 0, name, text, sources, data=data | {"x": x, "y": y}))
    for number, name in enumerate(names):
        for other in {int(entities * chance.random() ** 3), (number + 1) % entities, (number + 7) % entities}:
            if other != number:
                _relate(nodes, edges, name, names[other], _sources(documents, number, 1))
    for each in communities:
        members = [key(names[int(one)]) if each.level == 1 else key(f"report {one}") for one in each.members]
        sources = _sources(documents, len(members), min(len(documents), 3 * each.level))
        data = {"findings": [], "size": GROUP**each.level, "x": at[each.name][0], "y": at[each.name][1]}
        title = f"Community {each.name}"
        draft = NodeDraft(key(f"report {each.name}"), "report", each.level, title, "A report.", sources)
        nodes.append(_with(draft, data, members))
    return nodes, edges


def _with(draft: NodeDraft, data: dict[str, object], members: list[str]) -> NodeDraft:
    return NodeDraft(
        draft.key,
        draft.type,
        draft.level,
        draft.title,
        draft.text,
        draft.sources,
        data=data,
        children=members,
    )


def _relate(
    nodes: list[NodeDraft], edges: list[EdgeDraft], one: str, other: str, sources: list[NodeSourceDraft]
) -> None:
    title = f"{one} \u2013 {other}"
    weight = 1.0 + len(title) % 5
    data = {"relation": "met", "weight": weight, "source": key(one), "target": key(other)}
    nodes.append(NodeDraft(key(title), "relation", 0, title, f"{one} met {other}.", sources, data=data))
    edges.append(EdgeDraft("relation", key(one), key(other), "met", {"node": key(title), "weight": weight}))


def _sources(documents: Sequence[str], number: int, many: int) -> list[NodeSourceDraft]:
    return [
        NodeSourceDraft(documents[(number + 13 * each) % len(documents)], 1, 0, 0)
        for each in range(min(many, len(documents)))
    ]


def _communities(entities: int) -> list[Community]:
    """Ten neighbours by number each, then ten of those, then ten of those."""
    members = [str(number) for number in range(entities)]
    communities: list[Community] = []
    for level in (1, 2, 3):
        groups = [members[at : at + GROUP] for at in range(0, len(members), GROUP)]
        own = [Community(f"{level}.{number}", level, tuple(some)) for number, some in enumerate(groups)]
        communities += own
        members = [each.name for each in own]
    return communities


def publish(db: Database, nodes: Sequence[NodeDraft], edges: Sequence[EdgeDraft]) -> None:
    """They are the published graph of the collection."""
    subject = f"collection:{COLLECTION}"
    ask = Ask(kind="graph", subject=subject, content=db.token(), tenant=TENANT, collection=COLLECTION)
    requests.request(db, ask, run_id=db.token(), patience=decide.SilenceLimits())
    claim = claims.claim_best(db, lanes=tuple(Lane), pipelines=[""], owner="w", token=db.token(), ttl=600.0)
    assert claim is not None
    put = functools.partial(staging.put, claim=claim, nodes=nodes, edges=edges)
    assert fenced.finish(db, claim, spent=Spent(), also=put)
