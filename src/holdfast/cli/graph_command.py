"""`holdfast graph`: entities, relations and reports of a collection, as plain tables."""

from collections.abc import Callable
from typing import TypeVar

from rich.text import Text

from holdfast.bootstrap import AppServices
from holdfast.cli import context, terminal
from holdfast.service import formatting
from holdfast.service.graph_catalogue import EntityName
from holdfast.service.graphs import (
    GraphEntity,
    GraphPosition,
    GraphReport,
    GraphSummary,
    Neighbour,
    SourcePassages,
)

PAGE = 500
SHOWN_TEXT, SHOWN_PASSAGE = 100, 300

T = TypeVar("T")


class GraphTables:
    """Prints parts of the graph of one collection."""

    def __init__(self, collection: str, tenant: str, most: int, *, as_json: bool) -> None:
        self._collection, self._tenant = collection, tenant
        self._most = most
        self._as_json = as_json

    def entities(self, name: str, kind: str | None) -> None:
        """What is in the graph, and its entities, the most mentioned first."""
        with context.services(None) as services:
            services.collections.get(self._tenant, self._collection)
            summary: list[GraphSummary] = []

            def read(
                after: GraphPosition | None, limit: int
            ) -> tuple[list[GraphEntity], GraphPosition | None]:
                page = services.graphs.entities(*self._owner, q=name, kind=kind, after=after, limit=limit)
                summary.append(page.summary)
                return list(page.entities), page.next

            entities = self._pages(read)
        if self._as_json:
            terminal.show_json({"graph": summary[0], "entities": list(map(_entity, entities))})
            return
        console = terminal.console()
        if not self._is_there(summary[0]):
            return
        table = terminal.table("entity", "kind", "mentions", "description", numbers=("mentions",))
        for each in entities:
            listed = each.name
            table.add_row(
                *terminal.cells(listed.title, listed.kind, listed.mentions, _short(each.description))
            )
        console.print(table)
        self._more(len(entities))

    def entity(self, name: str) -> None:
        """One entity: its description, its neighbours, and the documents that it is from."""
        with context.services(None) as services:
            services.collections.get(self._tenant, self._collection)
            key = services.graphs.named(*self._owner, name).key
            details = services.graphs.entity(*self._owner, key)
            neighbours = self._pages(
                lambda after, limit: _neighbours(services, self._owner, key, after, limit)
            )
        if self._as_json:
            reply = _entity(details.entity) | {"generation": details.generation, "sources": details.sources}
            terminal.show_json(
                reply | {"report": details.community, "neighbours": list(map(_near, neighbours))}
            )
            return
        console = terminal.console()
        own = details.entity
        marks = _marks(stale=own.stale, stand_in=own.name.stand_in)
        line = Text(terminal.one_line(own.name.title), style="head")
        mentions = formatting.count(own.name.mentions, "mention")
        console.print(line.append(f"  {own.name.kind}, {mentions}{marks}", style="quiet"), soft_wrap=True)
        if own.name.names:
            console.print(
                f"also: {terminal.one_line(', '.join(own.name.names))}", style="quiet", markup=False
            )
        console.print(Text(terminal.one_line(" ".join(own.description.split()))))
        if details.community is not None:
            named = terminal.one_line(details.community.title)
            console.print(f"community: {named}  {details.community.key}", style="quiet", markup=False)
        console.print()
        table = terminal.table("neighbour", "relation", "weight", "description", numbers=("weight",))
        for each in neighbours:
            relation = f"{each.label} →" if each.outgoing else f"← {each.label}"
            weight = f"{each.weight:g}"
            text = _short(each.relation.text)
            table.add_row(*terminal.cells(each.entity.title, relation, weight, text))
        console.print(table if neighbours else Text("no neighbours", style="quiet"))
        _print_sources(details.sources)
        self._more(len(neighbours))

    def communities(self) -> None:
        """The reports, those of the highest level first."""
        with context.services(None) as services:
            services.collections.get(self._tenant, self._collection)
            summary = services.graphs.entities(*self._owner, limit=1).summary

            def read(
                after: GraphPosition | None, limit: int
            ) -> tuple[list[GraphReport], GraphPosition | None]:
                page = services.graphs.communities(*self._owner, after=after, limit=limit)
                return list(page.reports), page.next

            reports = self._pages(read)
        if self._as_json:
            terminal.show_json({"graph": summary, "communities": list(map(_report, reports))})
            return
        if not self._is_there(summary):
            return
        table = terminal.table("level", "entities", "report", "key", numbers=("level", "entities"))
        for each in reports:
            table.add_row(*terminal.cells(each.name.level, each.name.size, each.name.title, each.name.key))
        terminal.console().print(table)
        self._more(len(reports))

    def community(self, key: str) -> None:
        """One report: its text, its findings, and the entities that it is about."""
        with context.services(None) as services:
            services.collections.get(self._tenant, self._collection)
            details = services.graphs.community(*self._owner, key)
        if self._as_json:
            members = [_name(each) for each in details.members]
            own = ("generation", "findings", "communities", "sources")
            reply = _report(details.report) | {name: getattr(details, name) for name in own}
            terminal.show_json(reply | {"members": members})
            return
        console = terminal.console()
        report = details.report
        marks = _marks(stale=report.stale, stand_in=report.name.stand_in)
        line = Text(terminal.one_line(report.name.title), style="head")
        console.print(line.append(f"  level {report.name.level}{marks}", style="quiet"), soft_wrap=True)
        console.print(Text(terminal.harmless(report.text)))
        for finding in details.findings:
            console.print(Text(f"- {terminal.one_line(finding.text)}"))
        console.print()
        table = terminal.table("entity", "kind", "mentions", numbers=("mentions",))
        for each in details.members:
            table.add_row(*terminal.cells(each.title, each.kind, each.mentions))
        console.print(table)
        _print_sources(details.sources)

    @property
    def _owner(self) -> tuple[str, str]:
        return self._tenant, self._collection

    def _pages(
        self, read: Callable[[GraphPosition | None, int], tuple[list[T], GraphPosition | None]]
    ) -> list[T]:
        """As many rows as are wanted, page by page."""
        rows: list[T] = []
        after = None
        while len(rows) < self._most:
            some, after = read(after, min(PAGE, self._most - len(rows)))
            rows += some
            if after is None:
                break
        return rows

    def _is_there(self, summary: GraphSummary) -> bool:
        """True if there is a graph; what is in it was printed."""
        console = terminal.console()
        if summary.generation is None:
            console.print(f"no knowledge graph; build one with: holdfast jobs graph -c {self._collection}")
            return False
        names = (("entity", "entities"), ("relation", "relations"), ("report", "reports"))
        counts = ", ".join(f"{summary.counts[one]} {many}" for one, many in names)
        marks = _marks(stale=summary.stale, stand_in=summary.stand_in)
        console.print(f"{counts}{marks}", style="quiet")
        return True

    def _more(self, number: int) -> None:
        if number == self._most:
            terminal.console().print("more with --most", style="quiet")


def _neighbours(
    services: AppServices, owner: tuple[str, str], key: str, after: GraphPosition | None, limit: int
) -> tuple[list[Neighbour], GraphPosition | None]:
    page = services.graphs.neighbours(*owner, key, after=after, limit=limit)
    return list(page.neighbours), page.next


def _name(name: EntityName) -> dict[str, object]:
    own = ("key", "title", "kind", "names", "mentions", "community")
    return {each: getattr(name, each) for each in own}


def _entity(entity: GraphEntity) -> dict[str, object]:
    more = {"description": entity.description, "stale": entity.stale, "stand_in": entity.name.stand_in}
    return _name(entity.name) | more


def _near(each: Neighbour) -> dict[str, object]:
    own = {"label": each.label, "weight": each.weight, "outgoing": each.outgoing}
    relation = {"key": each.relation.key, "title": each.relation.title, "description": each.relation.text}
    return relation | own | {"entity": _name(each.entity)}


def _report(report: GraphReport) -> dict[str, object]:
    own = ("key", "title", "level", "parent", "size", "stand_in")
    named = {each: getattr(report.name, each) for each in own}
    return named | {"text": report.text, "stale": report.stale}


def _print_sources(sources: tuple[SourcePassages, ...]) -> None:
    console = terminal.console()
    for each in sources:
        line = Text(f"document:{each.source.document}  ", style="quiet").append(each.source.title)
        console.print(line.append("  stale" if each.source.stale else "", style="care"), soft_wrap=True)
        for passage in each.passages:
            page = f" (page {passage.page})" if passage.page is not None else ""
            number = Text(f"  {passage.number}{page}: ", style="quiet")
            console.print(number.append(_short(passage.text, SHOWN_PASSAGE)))


def _marks(*, stale: bool, stand_in: bool) -> str:
    return "".join(f", {name}" for name, is_so in (("stale", stale), ("stand-in", stand_in)) if is_so)


def _short(text: str, most: int = SHOWN_TEXT) -> str:
    line = terminal.one_line(" ".join(text.split()))
    return line if len(line) <= most else f"{line[:most]}…"
