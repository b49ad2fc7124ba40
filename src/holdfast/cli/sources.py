"""`holdfast sources`: add one, list those of a collection, show one, look at it now, remove it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.api import schemas_sources
from holdfast.cli import context, terminal
from holdfast.cli.exit_codes import CommandError, Exit
from holdfast.cli.options import metadata_of
from holdfast.core.states import Disposition
from holdfast.service import formatting
from holdfast.service.requests import RequestContext
from holdfast.service.sources import SourceRecord, with_secret_names

# Options that are lists, whatever their number.
LISTS = frozenset({"urls", "include", "exclude"})
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
SHOWN_FAILURES = 20


@dataclass(frozen=True, slots=True)
class SourceInput:
    """A source as somebody at a terminal describes it."""

    type: str
    pairs: Sequence[str]
    options: str | None
    every: str | None
    name: str
    metadata: str | None
    labels: Sequence[str]

    def read_options(self) -> dict[str, Any]:
        """The options; CommandError if they cannot be read."""
        values: dict[str, Any] = {}
        if self.options is not None:
            try:
                is_file = self.options.startswith("@")
                values = json.loads(Path(self.options[1:]).read_text("utf-8") if is_file else self.options)
            except (OSError, ValueError, RecursionError) as error:
                message = f"--options cannot be read as JSON ({error})"
                raise CommandError(message, Exit.USAGE, code="bad_source") from error
            if not isinstance(values, dict):
                raise CommandError("--options must be a JSON object", Exit.USAGE, code="bad_source")
        for pair in self.pairs:
            name, equals, value = pair.partition("=")
            if not equals:
                raise CommandError(f"--option {pair!r:.80} is not NAME=VALUE", Exit.USAGE, code="bad_source")
            if name in LISTS:
                values.setdefault(name, []).append(value)
            else:
                values[name] = {"true": True, "false": False}.get(value, value)
        return values

    def read_interval(self) -> float | None:
        """The seconds from look to look; None for on demand; CommandError for what is no time."""
        if self.every is None:
            return None
        text = self.every.strip().lower()
        number, unit = text.rstrip("smhd"), text[len(text.rstrip("smhd")) :]
        if not (number.isascii() and number.isdigit() and len(number) < 10) or unit not in UNITS:
            message = f"--every {self.every!r:.40} is no time; write seconds, or like 15m, 6h, 1d"
            raise CommandError(message, Exit.USAGE, code="bad_interval")
        return float(int(number) * UNITS[unit])


def add(tenant: str, collection: str, new: SourceInput, *, prune: bool, as_json: bool) -> None:
    """The collection has the source, and its first look is requested."""
    options, every = new.read_options(), new.read_interval()
    with context.services(None) as services:
        wish = RequestContext(tenant, context.actor())
        services.collections.make(wish, collection)
        source, answer = services.sources.add(
            wish,
            collection,
            new.type,
            options,
            name=new.name,
            refresh_every=every,
            prune=prune,
            metadata=metadata_of(new.metadata),
            labels=new.labels,
        )
    if as_json:
        terminal.show_json(schemas_sources.LookRequested.of(source, answer).model_dump(mode="json"))
        return
    again = "when you ask for it" if every is None else f"every {formatting.span(every)}"
    terminal.console().print(
        f"added source {source.id} ({terminal.one_line(source.name)}); a worker looks at it now,"
        f" and again {again}",
        markup=False,
    )


def listed(tenant: str, collection: str, *, as_json: bool) -> None:
    """The sources of a collection, the oldest at the top."""
    with context.services(None) as services:
        known = services.sources.all(tenant, collection)
    if as_json:
        shown = [schemas_sources.CollectionSource.of(each).model_dump(mode="json") for each in known]
        terminal.show_json(shown)
        return
    table = terminal.table("id", "type", "name", "state", "last look", "next look", "items")
    for each in known:
        looks = _moment(each.looked_at), _next(each)
        name = terminal.one_line(each.name)
        table.add_row(*terminal.cells(each.id, each.type, name, each.status, *looks, _tally(each)))
    console = terminal.console()
    console.print(table if known else f"collection {collection} has no sources", markup=False)
    for each in known:
        if each.error is not None:
            console.print(f"{each.id}: {terminal.one_line(each.error[1])} [{each.error[0]}]", markup=False)


def show(tenant: str, collection: str, source_id: str, *, as_json: bool) -> None:
    """One source with its options, its last look, and the items that failed."""
    with context.services(None) as services:
        source = services.sources.get(tenant, collection, source_id)
        failed = services.sources.items(source, state="failed", limit=SHOWN_FAILURES)
    if as_json:
        shown = schemas_sources.CollectionSource.of(source).model_dump(mode="json")
        items = [schemas_sources.SourceItemResponse.of(each).model_dump(mode="json") for each in failed]
        terminal.show_json({**shown, "failed_items": items})
        return
    console = terminal.console()
    every = "on demand"
    if source.refresh_every is not None:
        every = f"every {formatting.span(source.refresh_every)}"
    gone = "deletes documents that are gone" if source.prune else "keeps documents that are gone"
    lines = [
        f"{terminal.one_line(source.name)} ({source.type}, {source.id})",
        *(
            f"  {name}: {terminal.one_line(_text(value))}"
            for name, value in with_secret_names(source).items()
        ),
        f"looked at {every}; {gone}",
        f"state: {source.status}; last look: {_moment(source.looked_at)}; next look: {_next(source)}",
        f"items: {_tally(source)}",
    ]
    if source.error is not None:
        lines.append(f"error: {terminal.one_line(source.error[1])} [{source.error[0]}]")
    lines += [
        f"failed: {terminal.one_line(each.external_id)}: {terminal.one_line(each.error_message or '')}"
        f" [{each.error_code}]"
        for each in failed
    ]
    for line in lines:
        console.print(line, markup=False)


def refresh(tenant: str, collection: str, source_id: str, *, as_json: bool) -> None:
    """A look is requested; one that is under way is not doubled."""
    with context.services(None) as services:
        source = services.sources.get(tenant, collection, source_id)
        answer = services.sources.refresh(RequestContext(tenant, context.actor()), source)
        source = services.sources.get(tenant, collection, source_id)
    if as_json:
        terminal.show_json(schemas_sources.LookRequested.of(source, answer).model_dump(mode="json"))
    elif answer.disposition is Disposition.DUPLICATE:
        terminal.console().print("a look is under way already", markup=False)
    else:
        terminal.console().print(f"a worker looks at source {source.id} now", markup=False)


def remove(tenant: str, collection: str, source_id: str, *, delete_documents: bool, as_json: bool) -> None:
    """The source is gone; its documents stay, or go in the background."""
    with context.services(None) as services:
        source = services.sources.get(tenant, collection, source_id)
        wish = RequestContext(tenant, context.actor())
        services.sources.remove(wish, source, delete_documents=delete_documents)
    what = "a worker deletes its documents" if delete_documents else "its documents are kept"
    if as_json:
        terminal.show_json({"removed": source_id, "documents": "delete" if delete_documents else "keep"})
    else:
        terminal.console().print(f"removed source {source_id}; {what}", markup=False)


def _moment(at: float | None) -> str:
    return "never" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _next(source: SourceRecord) -> str:
    if source.is_looked_at:
        return "now"
    return "on demand" if source.next_at is None else _moment(source.next_at)


def _tally(source: SourceRecord) -> str:
    return ", ".join(f"{number} {name}" for name, number in source.counts.items() if number) or "none"


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
