"""The summaries of a collection or of a document: a tree that opens down to the passages."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from holdfast.kinds import raptor
from holdfast.service.trees import Passages, TreeNode, TreePage, TreePosition
from holdfast.web import derived_jobs, rendering
from holdfast.web.collections import PathCollection
from holdfast.web.page_access import Services

# Nodes in one answer; what is deeper is a link.
MOST_NODES = 150
PAGE = 50

router = rendering.router()


@dataclass(frozen=True, slots=True)
class Branch:
    """A node with what is shown below it. `more`: there is more below it than is shown."""

    node: TreeNode
    branches: tuple["Branch", ...] = ()
    passages: tuple[Passages, ...] = ()
    more: bool = False

    def every(self) -> Iterator["Branch"]:
        """It, and all that is shown below it."""
        yield self
        for branch in self.branches:
            yield from branch.every()


@dataclass(slots=True)
class _Grower:
    """Reads branches until there are enough."""

    read: Callable[[str], TreePage]
    left: int

    def branch(self, node: TreeNode) -> Branch:
        self.left -= 1
        if self.left <= 0:
            return Branch(node, more=True)
        page = self.read(node.node.key)
        branches = tuple(self.branch(each) for each in page.nodes)
        return Branch(node, branches, page.sources, more=page.next is not None)


@router.get("/collections/{name}/tree")
def tree(
    request: Request,
    services: Services,
    who: rendering.Who,
    collection: PathCollection,
    node: Annotated[str | None, Query(pattern="^[0-9a-f]{1,64}$")] = None,
    after: Annotated[str | None, Query(pattern=r"^\d{1,18}(\.\d{1,9}){3}$")] = None,
) -> Response:
    """Show the summaries of a collection, from the top or below one of them."""
    position = None if after is None else TreePosition(*map(int, after.split(".")))
    tenant, name = who.tenant, collection.id
    page = services.trees.of_collection(tenant, name, node=node, after=position, limit=PAGE)
    grower = _Grower(lambda key: services.trees.of_collection(tenant, name, node=key, limit=PAGE), MOST_NODES)
    branches = tuple(grower.branch(each) for each in page.nodes)
    shown = [each for branch in branches for each in branch.every()]
    of_one = {each.node.covers[0] for each in shown if len(each.node.covers) == 1}
    titles = {each.document.id: each.document.title for each in services.views.some(tenant, name, of_one)}
    return rendering.page(
        request,
        who,
        "tree.html",
        f"Summaries of {collection.title}",
        collection=collection,
        actions=len(services.actions.all(tenant, name)),
        tree=page,
        branches=branches,
        titles=titles,
        stand_in=any(each.node.stand_in for each in shown),
        stale=any(each.node.node.stale for each in shown),
        job=derived_jobs.of_collection(services, tenant, name, raptor.NAME),
        after=None if page.next is None else ".".join(map(str, page.next)),
    )
