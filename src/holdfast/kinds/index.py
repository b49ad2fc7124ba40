"""`index`: a document becomes searchable chunks, slice by slice, and only what changed is paid for.

Three layers of reuse, from coarse to fine. The same bytes with the same options are no new generation at all
(the request says `unchanged`). A slice whose pages, chunker and model are those of a slice of the published
generation takes its chunks over in the transaction that finishes it. A chunk whose text was embedded before,
anywhere in the tenant, is in the ledger and costs nothing.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from holdfast.core import keys, languages, subjects
from holdfast.core.chunk_edits import EDITS
from holdfast.core.errors import BadRequestError, HoldfastError, WorkError
from holdfast.core.records import Chunk, Claim, Copy, Slice
from holdfast.core.text import is_plain
from holdfast.documents import chunk
from holdfast.documents.blobs import Blobs
from holdfast.documents.parse import ocr_languages, records
from holdfast.documents.parse.paid import PaidAnswer
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.reader import Cut, KnownSlices
from holdfast.documents.parse.records import Format
from holdfast.engine import kinds as offers
from holdfast.engine.job_specs import SearchSource
from holdfast.engine.kinds import Finish, Kind, Offer
from holdfast.engine.work import Work
from holdfast.kinds import edited_chunks, file_facts, members, parser_choice, recognition, slice_facts
from holdfast.kinds.document_opening import DocumentOpener
from holdfast.kinds.edited_chunks import FLOW, DocumentEdits
from holdfast.kinds.flows import index_steps, library
from holdfast.kinds.flows.index_steps import FLOW_MODEL, FlowSetup, IndexFlows, PreparedChunk
from holdfast.kinds.log_phrases import many
from holdfast.ledger.pay import Call
from holdfast.search import term_counts, tokenizer
from holdfast.store.base.database import Database, Tx
from holdfast.store.library import chunk_edits, documents, integrity
from holdfast.store.library.quotas import UNLIMITED, Quota
from holdfast.store.protocol import slices
from holdfast.store.search import search_reads as search_store

NAME = subjects.INDEX
VERSION = edited_chunks.VERSION
# The name of the search source that is the chunks of documents.
CHUNKS = "chunks"
# Chunks that are paid for at a time: what a crash may repeat is bounded, progress is reported in between.
GROUP = 256
# Fewer chunks than this are staged in the transaction that finishes the slice.
SMALL = 200
MOST_WORDS = 200

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Choices:
    """How a document is indexed; frozen into its run. Sizes are in tokens, pages and rows.

    `provider` is the identity of one. `flow` names a version of a flow, whose steps are carried out instead;
    `llm` is the language model that they ask (provider, model), `drop` what they clean away. `offers` and
    `own_parsers` are what options may name; not frozen.
    """

    chunk_size: int = 256
    overlap: int = 0
    delimiter: str = ""
    slice_pages: int = 12
    slice_rows: int = 3000
    ocr: str = "auto"
    ocr_languages: str = "eng"
    properties: bool = True
    language: str = languages.AUTO
    parsers: Mapping[str, str] = field(default_factory=dict)
    provider: str = "local"
    model: str = ""
    flow: str = ""
    drop: tuple[str, ...] = ()
    llm: tuple[str, ...] = field(default=(), compare=False)
    offers: Mapping[str, Offer] = field(default_factory=dict, compare=False, repr=False)
    own_parsers: Sequence[str] = field(default=(), compare=False, repr=False)

    @property
    def provider_name(self) -> str:
        """What people call the provider; its identity where it has no name here."""
        return next(
            (name for name, each in self.offers.items() if each.identity == self.provider), self.provider
        )

    def checked(self) -> "Choices":
        """These choices if they can be followed; otherwise BadRequestError."""
        for name in ("chunk_size", "overlap"):
            if type(getattr(self, name)) is not int:
                raise BadRequestError(f"{name} must be a whole number", code="bad_option")
        for name in ("slice_pages", "slice_rows"):
            size = getattr(self, name)
            if type(size) is not int or not 1 <= size <= 100_000:
                raise BadRequestError(f"{name} must be a whole number from 1 to 100,000", code="bad_option")
        for name in ("delimiter", "model"):
            text = getattr(self, name)
            if not isinstance(text, str) or len(text) > MOST_WORDS or not is_plain(text):
                message = f"{name} must be text of at most {MOST_WORDS} characters"
                raise BadRequestError(message, code="bad_option")
        self._check_reading()
        if not self.model:
            raise BadRequestError("model must be the name of a model", code="bad_option")
        if not isinstance(self.flow, str):
            raise BadRequestError("flow must be the name and version of a flow", code="bad_option")
        if self.flow:
            library.split_id(self.flow)
        self.cutting()
        return self

    def _check_reading(self) -> None:
        """Return if files can be read like this; otherwise BadRequestError."""
        if self.ocr not in recognition.MODES:
            raise BadRequestError("ocr must be auto, on or off", code="bad_option")
        try:
            ocr_languages.split(str(self.ocr_languages))
        except ValueError as error:
            raise BadRequestError(f"ocr_languages: {error}", code="bad_option") from error
        parser_choice.check(self.parsers)
        if type(self.properties) is not bool:
            raise BadRequestError("properties must be true or false", code="bad_option")
        if self.language != languages.AUTO and self.language not in languages.LANGUAGES:
            known = ", ".join(languages.LANGUAGES)
            raise BadRequestError(f"language must be auto or one of: {known}", code="bad_option")

    def cutting(self) -> chunk.ChunkOptions:
        """The part of them that the chunker needs."""
        return chunk.ChunkOptions(self.chunk_size, self.overlap, self.delimiter, self.drop)


_NO_OPTIONS = frozenset({"drop", "llm", "offers", "own_parsers"})
OPTIONS = tuple(name for name in Choices.__dataclass_fields__ if name not in _NO_OPTIONS)


def choices(defaults: Choices, *layers: Mapping[str, Any] | None, stored: bool = False) -> Choices:
    """The defaults, overlaid by a collection's options and then by the document's own.

    A provider named without a model means its default model. With `stored` the options were accepted once: a
    provider that has gone from the settings since is not refused, it is one that nobody can pay.
    """
    merged = {name: getattr(defaults, name) for name in OPTIONS}
    for layer in layers:
        for name, value in (layer or {}).items():
            if name not in OPTIONS:
                raise BadRequestError(
                    f"there is no option {name!r}; known are: {', '.join(sorted(OPTIONS))}", code="bad_option"
                )
            if name == "parsers":
                merged[name] = parser_choice.resolved(value, defaults.own_parsers, stored=stored)
            elif name != "provider":
                merged[name] = value
        if layer and "provider" in layer:
            merged |= _named(defaults.offers, layer, stored=stored)
    return replace(defaults, **merged).checked()


def _named(known: Mapping[str, Offer], layer: Mapping[str, Any], *, stored: bool) -> dict[str, Any]:
    name = layer["provider"]
    if stored and name not in known:
        return {"provider": name}
    chosen = offers.offer(known, name)
    return {"provider": chosen.identity, "model": layer.get("model", chosen.model)}


def frozen(chosen: Choices, file_name: str) -> dict[str, Any]:
    """The options of a run: the choices, the file's name as a hint, and the versions that count."""
    versions = {"parsers": _parsers(), "chunker": chunk.VERSION, "words": tokenizer.VERSION}
    options = {name: getattr(chosen, name) for name in OPTIONS if name != FLOW}
    if chosen.flow:
        options |= {FLOW: chosen.flow, FLOW_MODEL: list(chosen.llm)}
    return {**options, "name": file_name, "versions": versions}


@cache
def _parsers() -> str:
    return keys.digest(*sorted(records.PARSER_VERSIONS.values()))[:16]


class Index:
    """The work of indexing, in one process."""

    def __init__(
        self,
        db: Database,
        shelf: Blobs,
        parser: Parser,
        quota: Quota = UNLIMITED,
        services: Mapping[str, str] | None = None,
        flows: FlowSetup | None = None,
    ) -> None:
        """`services` are the paid services that parsers may ask, by name, and their identities."""
        self._db = db
        self._opener = DocumentOpener(db, services or {})
        self._flows = IndexFlows(db, flows or FlowSetup())
        self._quota = quota
        self._shelf = shelf
        self._parser = parser
        self._recognition = recognition.Recognition(db, parser)

    def close(self) -> None:
        """The process that reads documents has ended; it starts again when it is needed."""
        self._parser.close()

    def kind(self) -> Kind:
        """The kind to register."""
        return Kind(
            NAME,
            self.run,
            plan=self.plan,
            publish=self.publish,
            version=VERSION,
            also=(edited_chunks.EDITED_VERSION, edited_chunks.FLOW_VERSION),
            search=SearchSource(CHUNKS, weight=1.0),
        )

    def plan(self, work: Work) -> list[Slice]:
        """The slices of the document; a small one is a single slice and is done by the same task."""
        flow = self._flows.of(work)
        chosen = replace(_chosen(work), **self._flows.parse_options(flow))
        path = self._shelf.path(work.content)
        recognition.check(chosen.ocr, chosen.ocr_languages)
        cannot = recognition.unavailable(chosen.ocr, chosen.ocr_languages)
        name, scans = str(work.options.get("name", "")), cannot is None

        def outlined(password: str | None, answer: PaidAnswer | None) -> records.Outline:
            return self._parser.outline(
                path, name, scans=scans, password=password, parsers=chosen.parsers, answer=answer
            )

        outline = self._opener.opened(work, outlined)
        if outline.format in records.IMAGES and cannot is not None:
            raise WorkError(f"this is an image, whose text is read by OCR, and {cannot}", code="ocr_missing")
        cuts: Sequence[records.UnitRange] = ()
        if outline.format is not Format.ZIP:
            cuts = records.slices(outline, pages=chosen.slice_pages, rows=chosen.slice_rows)
        if cuts and flow is not None and flow.reads_whole_document:
            cuts = [outline.whole]
        about = file_facts.planned(outline, with_properties=chosen.properties)
        common: dict[str, Any] = {"format": outline.format.value, "of": len(cuts)}
        if flow is not None:
            common["document_pages"] = index_steps.pages_of(outline)
        if len(cuts) > 1:
            common["language"] = self._language(work, chosen, outline)
        text = [
            Slice(
                {
                    **common,
                    "first": piece.first,
                    "last": piece.last,
                    **(about if number == 0 else {}),
                },
                weight=max(1, piece.last - piece.first + 1),
            )
            for number, piece in enumerate(cuts)
        ]
        return [*text, *members.slices(self._db, work, outline)]

    def _language(self, work: Work, chosen: Choices, outline: records.Outline) -> str | None:
        """The language of a document of several slices, all of which must have the same; None if unknown."""
        if chosen.language != languages.AUTO:
            return chosen.language
        path, name = self._shelf.path(work.content), str(work.options.get("name", ""))
        samples = records.samples(outline)
        language = self._opener.opened(
            work,
            lambda password, _answer: self._parser.language(
                path, outline.format, samples, password=password, name=name
            ),
        )
        # Scans have no text yet; the language that OCR is to read is theirs.
        return language or (languages.of_ocr(chosen.ocr_languages) if outline.scans else None)

    def run(self, work: Work) -> Finish:
        """One slice: parsed, cut, embedded or looked up, and ready to be published."""
        if work.payload.get("members"):
            return Finish(members.taken_out(work, self._shelf, self._parser))
        piece = work.payload
        form = Format(str(piece["format"]))
        flow = self._flows.of_slice(work, form)
        chosen = replace(_chosen(work), **flow.changes)
        path = self._shelf.path(work.content)
        units = records.UnitRange(int(piece["first"]), int(piece["last"]))
        earlier: Mapping[str, slices.DoneSlice] = {}
        if work.may_copy and work.claim.generation > 1:
            earlier = index_steps.reusable(slices.published(self._db, work.claim.head_id))
        edits, language = DocumentEdits.of(work), piece.get("language", chosen.language)
        known = KnownSlices((*_parts(chosen), *flow.parts), edits.reusable(earlier), language)
        cut = self._cut(work, chosen, form, units, known)
        recognised = self._recognised(work, chosen, path, form, cut)
        if recognised:
            cut = self._cut(work, chosen, form, units, known, recognised)
        work.check()
        facts: dict[str, Any] = {
            "digest": cut.digest,
            "format": form.value,
            "pages": slice_facts.pages(cut, form, piece),
            **file_facts.of_slice(piece, cut),
            "language": cut.language,
        }
        if cut.readings:
            facts["readings"] = [slice_facts.reading(each) for each in cut.readings]
        read = f"parsed {many(facts['pages'], 'page')} of {form.value}"
        if cut.skipped:
            read = f"{read}, left out {cut.skipped:,} characters of encoded data or minified code"
        if work.claim.ordinal <= 1 and form in records.PAGED:
            facts["thumbnail"] = self._thumbnail(work, form)
        if cut.pieces is None:
            if self._has_vectors(work, earlier[cut.digest].copy):
                return self._taken_over(work, earlier[cut.digest], facts, read)
            cut = self._cut(
                work, chosen, form, units, KnownSlices(known.parts, language=language), recognised
            )
        edited = edits.apply(work, cut.pieces or ())
        facts |= edited.facts
        same = earlier.get(cut.digest) if edits.edits else None
        if same is not None and edited_chunks.are_same(same, edited) and self._has_vectors(work, same.copy):
            return self._taken_over(work, same, facts, read)
        chunks = many(len(cut.pieces or ()), "chunk")
        work.note(f"{read}, cut {chunks} for {chosen.model} of {chosen.provider}{edited.note}")
        prepared, about = flow.carried_out(work, edited.pieces, cut.language)
        facts |= about
        return self._embedded(work, chosen, prepared, facts)

    def _recognised(
        self, work: Work, chosen: Choices, path: Path, form: Format, cut: Cut
    ) -> list[records.Page]:
        """The pages of the slice without a text layer as OCR reads them; none where it is off or missing."""
        if not any(reading.picture for reading in cut.readings):
            return []
        cannot = recognition.unavailable(chosen.ocr, chosen.ocr_languages)
        if cannot is not None:
            recognition.check(chosen.ocr, chosen.ocr_languages)
            work.note(f"pages without text are left out: {cannot}")
            return []
        pages = work, path, form, cut.readings, chosen.ocr_languages
        return self._opener.opened(
            work, lambda password, _: self._recognition.pages(*pages, password=password)
        )

    def _cut(
        self,
        work: Work,
        chosen: Choices,
        form: Format,
        units: records.UnitRange,
        known: KnownSlices,
        recognised: Sequence[records.Page] = (),
    ) -> Cut:
        path = self._shelf.path(work.content)
        request, name = (path, form, units, chosen.cutting(), known), str(work.options.get("name", ""))

        def cut(password: str | None, answer: PaidAnswer | None) -> Cut:
            parsers = chosen.parsers
            return self._parser.cut(
                *request, recognised=recognised, password=password, name=name, parsers=parsers, answer=answer
            )

        return self._opener.opened(work, cut)

    def _has_vectors(self, work: Work, copy: Copy) -> bool:
        return integrity.has_vectors(self._db, work.claim.tenant, work.claim.head_id, copy)

    def _taken_over(self, work: Work, earlier: slices.DoneSlice, facts: dict[str, Any], read: str) -> Finish:
        copy = earlier.copy
        if FLOW in earlier.result:
            facts[FLOW] = earlier.result[FLOW]
        work.note(f"{read}, reused {many(copy.chunks, 'chunk')} of version {copy.generation}")

        def also(tx: Tx) -> None:
            slices.copy_counts(tx, work.claim, copy)
            if _of_several(work):
                slices.put_progress(
                    tx, work.claim, copy.chunks, slice_facts.stages(facts, 0, copy.chunks, copy.chunks)
                )

        return Finish({**facts, "taken_over": copy.generation}, copy=copy, also=also)

    def _embedded(
        self, work: Work, chosen: Choices, pieces: Sequence[PreparedChunk], facts: dict[str, Any]
    ) -> Finish:
        calls = [Call(chosen.provider, "embeddings", chosen.model, each.embed) for each in pieces]
        rules = languages.rules(facts["language"])
        large = len(pieces) > SMALL
        chunks: list[Chunk] = []
        numbers: list[bytes] = []
        for start in range(0, len(pieces), GROUP):
            group = calls[start : start + GROUP]
            work.pay(group)
            terms = [tokenizer.terms_of(each.search, rules) for each in pieces[start : start + GROUP]]
            numbers += [each.numbers for each in terms]
            staged = [
                Chunk(
                    position=each.edited.position,
                    text=each.edited.piece.text,
                    page=each.edited.piece.page,
                    call_key=call.key(work.claim.tenant),
                    data={**slice_facts.chunk_data(each.edited, facts), **each.data},
                    words=term.words,
                )
                for each, call, term in zip(pieces[start:], group, terms, strict=False)
            ]
            chunks += staged
            if large:
                work.stage(staged)
                stages = slice_facts.stages(facts, work.spent.paid_calls, len(chunks), len(pieces))
                work.note(slice_facts.paid_line(work, len(chunks), len(pieces)))
                work.progress(len(chunks), len(pieces), unit="chunks", stages=stages)
        counted = term_counts.pack(numbers, rules)
        paid = work.spent.paid_calls
        if not large:
            work.note(slice_facts.paid_line(work, len(chunks), len(pieces)))

        def also(tx: Tx) -> None:
            search_store.put_counts(tx, work.claim, counted)
            if _of_several(work) and not large:
                slices.put_progress(
                    tx, work.claim, len(chunks), slice_facts.stages(facts, paid, len(chunks), len(chunks))
                )

        return Finish({**facts, "chunks": len(chunks)}, chunks=() if large else chunks, also=also)

    def _thumbnail(self, work: Work, form: Format) -> str | None:
        """The digest of a picture of the first page; a document without one is indexed all the same."""
        try:
            path = self._shelf.path(work.content)
            picture = self._opener.opened(
                work, lambda password, _: self._parser.thumbnail(path, form, password=password)
            )
            return self._shelf.put(picture).digest
        except HoldfastError as error:
            log.info("no thumbnail of %s: %s", work.subject, error.message)
            return None

    def publish(self, tx: Tx, claim: Claim) -> Callable[[Tx], None]:
        """The document's facts are those of the generation that becomes visible; one without text is none.

        The documents inside it are locked and requested first, its own row is written last.
        """
        done = slices.done(tx, claim.run_id)
        total = sum(each.copy.chunks for each in done)
        results = [each.result for each in done]
        inside = members.published(tx, claim, results, self._quota)
        if not total and not inside and not any(each.get(EDITS) for each in results):
            raise WorkError("no text was found in the document", code="no_text")
        facts = file_facts.of_run(results, total)
        name = subjects.document_id(claim.subject)

        def writes(tx: Tx) -> None:
            documents.put_facts(tx, claim.tenant, name, facts, is_first=claim.generation == 1)
            if claim.generation > 1:
                chunk_edits.drop_taken_back(tx, claim.tenant, name)
            if facts.unread:
                documents.put_run_gaps(tx, claim.run_id, facts.unread)

        return writes


def _of_several(work: Work) -> bool:
    """True for a slice whose document has others: one that is done in a moment shows no progress."""
    return int(work.payload["of"]) > 1


def _chosen(work: Work) -> Choices:
    options = {name: work.options[name] for name in OPTIONS if name in work.options}
    return Choices(**options)


def _parts(chosen: Choices) -> tuple[str, ...]:
    """What the chunks of a slice depend on beside its pages and parser: chunker, terms, model."""
    return (
        str(chunk.VERSION),
        str(tokenizer.VERSION),
        str(chosen.chunk_size),
        str(chosen.overlap),
        chosen.delimiter,
        chosen.provider,
        chosen.model,
        *chosen.drop,
    )
