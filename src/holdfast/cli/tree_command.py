"""`holdfast tree`: the summaries of a collection or of a document, as an outline."""

from rich.text import Text

from holdfast.bootstrap import AppServices
from holdfast.cli import context, terminal
from holdfast.service.trees import TreeNode, TreePage

PAGE = 100


def tree(
    collection: str, *, node: str | None, document: str | None, most: int, tenant: str, as_json: bool
) -> None:
    """The nodes are on standard output, each below the one that summarises it."""
    with context.services(None) as services:
        services.collections.get(tenant, collection)
        outline = _outline(services, (tenant, collection), document, node, most)
        passages = _page(services, (tenant, collection), document, node).sources if node is not None else ()
    if as_json:
        nodes = [{"depth": depth, **_fields(each)} for depth, each in outline]
        terminal.show_json({"nodes": nodes, "sources": list(passages)})
        return
    console = terminal.console()
    if not outline and not passages:
        console.print("no summaries; make some with: holdfast jobs raptor")
    for depth, each in outline:
        console.print(_line(depth, each), soft_wrap=True)
    for passage in passages:
        console.print(
            Text(f"document:{passage.source.document}  ", style="quiet").append(passage.source.title)
        )
        for chunk in passage.chunks:
            page = f" (page {chunk.page})" if chunk.page is not None else ""
            console.print(
                Text(f"  {chunk.number}{page}: ", style="quiet").append(terminal.one_line(chunk.text))
            )
    if len(outline) == most:
        console.print("more with --most, or --node KEY", style="quiet")


def _outline(
    services: AppServices, owner: tuple[str, str], document: str | None, node: str | None, most: int
) -> list[tuple[int, TreeNode]]:
    """At most so many nodes below `node`, depth first."""
    listed: list[tuple[int, TreeNode]] = []

    def walk(parent: str | None, depth: int) -> None:
        for each in _page(services, owner, document, parent).nodes:
            if len(listed) >= most:
                return
            listed.append((depth, each))
            if each.node.children:
                walk(each.node.key, depth + 1)

    walk(node, 0)
    return listed


def _page(services: AppServices, owner: tuple[str, str], document: str | None, node: str | None) -> TreePage:
    tenant, collection = owner
    if document is None:
        return services.trees.of_collection(tenant, collection, node=node, limit=PAGE)
    return services.trees.of_document(services.documents.get(tenant, document), node=node, limit=PAGE)


def _fields(each: TreeNode) -> dict[str, object]:
    node = each.node
    shown = ("key", "type", "level", "title", "text", "document", "children", "stale")
    return {name: getattr(node, name) for name in shown} | {"covers": each.covers, "stand_in": each.stand_in}


def _line(depth: int, each: TreeNode) -> Text:
    node = each.node
    line = Text("  " * depth).append(terminal.one_line(node.title), style="head")
    marks = [name for name, is_so in (("stale", node.stale), ("stand-in", each.stand_in)) if is_so]
    return line.append(f"  {node.key}{''.join(f', {mark}' for mark in marks)}", style="quiet")
