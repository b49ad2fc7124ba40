"""Which documents a job reads: those named, or all of its collection, in the generations that answer now.

A job reads what is published when it is *planned*, and the generations are frozen into its slices. A document
that is replaced or deleted before its slice is carried out is left out of that job and counted: half of an
old version and half of a new one would be neither.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.core import filters, keys
from holdfast.core.errors import BadRequestError, MustWaitError, NotFoundError, WorkError
from holdfast.core.filters import Filter
from holdfast.core.text import is_plain
from holdfast.engine.models import Model
from holdfast.engine.work import Work
from holdfast.store.base.database import Database
from holdfast.store.jobs import job_sources
from holdfast.store.jobs.job_sources import JobSource
from holdfast.store.library import documents

MOST_DOCUMENTS = 100_000
MOST_NAMED = 1000
MOST_NAME = 200
# What `filter` is called among frozen options: a kind may have a parameter of that name.
DOCUMENT_FILTER = "document_filter"
# Seconds between two looks at documents that a job waits for.
WAIT_FOR_READY = 3.0


@dataclass(frozen=True, slots=True)
class JobScope:
    """What a job is about: a collection, perhaps some documents of it, or one document."""

    tenant: str
    collection: str
    documents: tuple[str, ...] | None = None
    only: Filter | None = None

    def sources(self, db: Database) -> list[JobSource]:
        """Its ready documents; NotFoundError for a named one that is none of the collection's."""
        if self.documents is None:
            most = MOST_DOCUMENTS + 1
            ready = job_sources.ready(db, self.tenant, self.collection, limit=most, only=self.only)
            if len(ready) > MOST_DOCUMENTS:
                message = f"the collection has more than {MOST_DOCUMENTS:,} documents; name some of them"
                raise BadRequestError(message, code="bad_params")
            return ready
        missing = job_sources.unknown(db, self.tenant, self.collection, self.documents)
        if missing:
            raise NotFoundError(f"there is no document {missing[0]!r}", code="unknown_document")
        return job_sources.chosen(db, self.tenant, self.collection, self.documents, only=self.only)


def digest(sources: Sequence[JobSource]) -> str:
    """What a job would read: the same while no document of it has another generation."""
    return keys.digest(*(f"{each.document}@{each.generation}" for each in sources))


def planned(db: Database, work: Work) -> list[JobSource]:
    """The sources of a job that is being planned; WorkError when there is nothing to read."""
    named = work.options.get("documents")
    chosen = tuple(str(each) for each in named) if isinstance(named, list) else None
    subject_type, _, name = work.subject.partition(":")
    collection = work.claim.collection or name
    if subject_type == "document":
        document = documents.document(db, work.claim.tenant, name)
        collection, chosen = document.collection if document is not None else collection, (name,)
    try:
        only = filter_of(work.options)
        sources = JobScope(work.claim.tenant, collection, chosen, only).sources(db)
    except NotFoundError as error:
        raise WorkError(
            f"{error.message} any more; request the job again", code="documents_changed"
        ) from error
    if work.options.get("wait_for_ready") and job_sources.coming(db, work.claim.tenant, collection, chosen):
        message = "some of its documents are not ready yet"
        raise MustWaitError(message, reason="documents", delay=WAIT_FOR_READY)
    if not sources:
        raise WorkError("no document is ready; index some first", code="nothing_ready")
    return sources


def named(params: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The documents that a request names, each once; None for all of the collection."""
    names = params.get("documents")
    if names is None:
        return None
    texts = isinstance(names, list) and all(isinstance(each, str) and is_plain(each) for each in names)
    if not texts or not 1 <= len(names) <= MOST_NAMED:
        raise bad("documents", f"a list of 1 to {MOST_NAMED} ids")
    return tuple(dict.fromkeys(names))


def filter_of(options: Mapping[str, Any]) -> Filter | None:
    """The filter that documents of a job must pass, by its frozen options; None for none."""
    value = options.get(DOCUMENT_FILTER)
    return None if value is None else filters.parse(value)


def bad(name: str, form: str) -> BadRequestError:
    """The error for a parameter of the wrong form."""
    return BadRequestError(f"{name} must be {form}", code="bad_params")


def known(params: Mapping[str, Any], *names: str) -> None:
    """Every parameter is one of these; otherwise BadRequestError."""
    if unknown := sorted(set(params) - set(names)):
        message = f"there is no parameter {unknown[0]!r:.80}; known are: {', '.join(names)}"
        raise BadRequestError(message, code="bad_params")


def text_of(params: Mapping[str, Any], name: str, most: int) -> str:
    """A text among the parameters, empty if it is not there."""
    text = params.get(name, "")
    if not isinstance(text, str) or len(text) > most or not is_plain(text):
        raise bad(name, f"text of at most {most:,} characters")
    return text.strip()


def model_named(params: Mapping[str, Any]) -> dict[str, str]:
    """The `provider` and `model` that a request names, as far as it does."""
    texts = {name: text_of(params, name, MOST_NAME) for name in ("provider", "model")}
    return {name: text for name, text in texts.items() if text}


def whole(params: Mapping[str, Any], name: str, default: int, most: int) -> int:
    """A whole number from 1 among the parameters."""
    number = params.get(name, default)
    if type(number) is not int or not 1 <= number <= most:
        raise bad(name, f"a whole number from 1 to {most:,}")
    return number


def frozen(params: Mapping[str, Any], model: Model, prompts: int) -> dict[str, Any]:
    """The options of a job's run: what was asked for, of which model, in which words."""
    own = {} if model.parameters is None else {"parameters": dict(model.parameters)}
    return {**params, "provider": model.provider, "model": model.name, "prompts": prompts, **own}


def model_of(work: Work) -> Model:
    """The model that is frozen into the run."""
    own = work.options.get("parameters")
    parameters = own if isinstance(own, Mapping) else None
    return Model(str(work.options["provider"]), str(work.options["model"]), parameters)
