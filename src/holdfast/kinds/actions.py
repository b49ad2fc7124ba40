"""`action`: what a collection is told to do with each ready document: extract, analyse, prompt, agent.

A follow-up is a run of this kind on `document:42#action:3`, made in the transaction that published the
document. Its content names the generation it is for, its options are the action's. The sort `webhook` is no
run of this kind: its event is a delivery of its own (see `webhook`).
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar

from holdfast.core.errors import BadRequestError, WorkError
from holdfast.core.text import is_plain
from holdfast.documents import fetch
from holdfast.engine.kinds import Kind, Supplies
from holdfast.engine.work import Work
from holdfast.kinds import agent, document_text, extract, model_calls, prompt, schemas
from holdfast.kinds.agent import AgentTask, Search
from holdfast.kinds.document_text import DocumentPassage, Reading
from holdfast.kinds.log_phrases import many
from holdfast.kinds.model_calls import Model
from holdfast.kinds.prompt import PromptTask
from holdfast.ledger import prices
from holdfast.ledger.pay import Call
from holdfast.store.base.database import Database
from holdfast.store.follow_ups import deliveries

NAME = "action"
VERSION = 1
PIPELINE = f"{NAME}@{VERSION}"
MOST_INSTRUCTION = 20_000
MOST_NAME = 200
MOST_URL = 2000

Analyser = Callable[[str, Sequence[DocumentPassage]], Mapping[str, Any]]
"""A function over a document's text and its passages, whose JSON answer is kept."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Analyse:
    """Which of the registered functions is run."""

    analyser: str


@dataclass(frozen=True, slots=True)
class ExtractFields:
    """Which fields are taken from the text, by their JSON Schema."""

    schema: Mapping[str, Any]
    instruction: str = ""


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """Where an event is sent."""

    url: str


BOUNDS: dict[str, tuple[float, float]] = {
    "part_tokens": (200, 200_000),
    "most_parts": (1, 1000),
    "answer_tokens": (1, 100_000),
    "most_steps": (2, 50),
    "most_cost": (0, 1_000_000),
}
LENGTHS = {
    "instruction": MOST_INSTRUCTION,
    "provider": MOST_NAME,
    "model": MOST_NAME,
    "analyser": MOST_NAME,
    "url": MOST_URL,
}
SORTS: dict[str, type[Any]] = {
    "extract": ExtractFields,
    "analyse": Analyse,
    "prompt": PromptTask,
    "agent": AgentTask,
    "webhook": WebhookTarget,
}
ASKING = frozenset({"extract", "prompt", "agent"})
"""These ask a model, which may be named, and so may its provider."""


def options(sort: str, params: Mapping[str, Any], analysers: Sequence[str]) -> dict[str, Any]:
    """What a follow-up of this sort is frozen with; BadRequestError for what can never be done."""
    if sort not in SORTS:
        message = f"there is no sort {sort!r} of action; there are {', '.join(sorted(SORTS))}"
        raise BadRequestError(message, code="unknown_action")
    form = SORTS[sort]
    known = {each.name: each.default for each in fields(form)}
    if sort in ASKING:
        known |= {"provider": None, "model": None}
    for name, value in params.items():
        if name not in known:
            message = f"{sort} takes no {name!r}; it takes {', '.join(sorted(known))}"
            raise BadRequestError(message, code="bad_params")
        _check(name, value)
    for name, default in known.items():
        if default is MISSING and not params.get(name):
            raise BadRequestError(f"{sort} needs {name}", code="bad_params")
    if sort == "analyse" and params["analyser"] not in analysers:
        message = (
            f"the analyser {params['analyser']!r} is not registered; the setting "
            "HOLDFAST_ANALYSERS lists them"
        )
        raise BadRequestError(message, code="unknown_analyser")
    if sort == "extract":
        params = {**params, "schema": schemas.checked(params["schema"])}
    if sort == "webhook":
        checked_url(params["url"])
    return {"sort": sort, **params}


def checked_url(url: str) -> str:
    """The address as it is used; BadRequestError for what is none. Where it leads is judged at each try."""
    if len(url) > MOST_URL or not is_plain(url):
        raise BadRequestError(f"a url has at most {MOST_URL} characters", code="bad_params")
    try:
        return fetch.checked(url)
    except WorkError as error:
        raise BadRequestError(error.message, code="url_forbidden") from error


def _check(name: str, value: object) -> None:
    if name in BOUNDS:
        low, high = BOUNDS[name]
        whole = type(value) is int or (name == "most_cost" and type(value) is float)
        if not whole or not low <= value <= high:  # type: ignore[operator]
            raise BadRequestError(f"{name} must be a number from {low:,} to {high:,}", code="bad_params")
    elif name in LENGTHS and (
        not isinstance(value, str) or not 0 < len(value) <= LENGTHS[name] or not is_plain(value)
    ):
        message = f"{name} must be text of 1 to {LENGTHS[name]:,} characters"
        raise BadRequestError(message, code="bad_params")


def kind_of(sort: str) -> tuple[str, str]:
    """The kind and the pipeline of what follows by an action of this sort."""
    return (deliveries.KIND, deliveries.PIPELINE) if sort == "webhook" else (NAME, PIPELINE)


def foreseen(options: Mapping[str, Any], model: Model, document: Reading) -> tuple[Sequence[Call], bool]:
    """The calls that an action would make for a document, and whether it is these and no others."""
    match options["sort"]:
        case "extract":
            wanted = _made(ExtractFields, options)
            calls = extract.foreseen_text(model, document.text, wanted.schema, wanted.instruction)
            return calls, len(calls) == 1
        case "prompt":
            return prompt.foreseen(model, _made(PromptTask, options), document)
        case "agent":
            return [agent.first_question(model, _errand(options), document)], False
    return (), True


class ActionRunner:
    """The work of follow-ups, in one process."""

    def __init__(
        self, db: Database, supplies: Supplies, *, analysers: Sequence[str] = (), search: Search
    ) -> None:
        self._db = db
        self._supplies = supplies
        self._analysers = tuple(analysers)
        self._search = search

    def kind(self) -> Kind:
        """The kind to register."""
        return Kind(NAME, self.run, version=VERSION)

    def run(self, work: Work) -> dict[str, Any]:
        """One follow-up."""
        document = document_text.read(self._db, work.claim.tenant, work.content)
        work.note(f"read {many(len(document.passages), 'chunk')} of {many(document.pages, 'page')}")
        result = self._done(work, document)
        work.note(f"{work.options.get('sort')} done: {many(work.spent.paid_calls, 'call')} paid")
        return result

    def _done(self, work: Work, document: Reading) -> dict[str, Any]:
        match work.options.get("sort"):
            case "extract":
                return self._extract(work, document)
            case "analyse":
                return self._analyse(work, document)
            case "prompt":
                return prompt.run(work, self._model(work), _made(PromptTask, work.options), document)
            case "agent":
                found = agent.Agent(self._db, work, document, self._search)
                return found.run(self._model(work), _errand(work.options))
        message = f"this worker knows no action {work.options.get('sort')!r}; a newer one may"
        raise WorkError(message, code="unknown_action")

    def _model(self, work: Work) -> Model:
        try:
            return model_calls.chosen(self._supplies, work.options)
        except BadRequestError as error:  # the settings of this worker have changed since it was asked for
            raise WorkError(error.message, code=error.code) from error

    def _extract(self, work: Work, document: Reading) -> dict[str, Any]:
        wanted, model = _made(ExtractFields, work.options), self._model(work)
        found = extract.from_text(work, model, document.text, wanted.schema, wanted.instruction)
        return {"fields": found, "model": model.name, "stand_in": model.stand_in}

    def _analyse(self, work: Work, document: Reading) -> dict[str, Any]:
        path = _made(Analyse, work.options).analyser
        found: object = load_analyser(path, self._analysers)(document.text, document.passages)
        if not isinstance(found, Mapping):
            message = f"the analyser {path} must answer a mapping, not {type(found).__name__}"
            raise WorkError(message, code="bad_result")
        return {"analyser": path, "found": dict(found)}


def load_analyser(path: str, registered: Sequence[str]) -> Analyser:
    """The function at `module:name`, if it is registered; WorkError that says what is wrong otherwise."""
    if path not in registered:
        message = (
            f"the analyser {path} is not registered on this worker; the setting HOLDFAST_ANALYSERS lists them"
        )
        raise WorkError(message, code="unknown_analyser")
    module, _, name = path.partition(":")
    try:
        found: Analyser = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        message = f"the analyser {path} cannot be imported ({error}); it should be like module:name"
        raise WorkError(message, code="unknown_analyser") from error
    return found


def _made(form: type[T], given: Mapping[str, Any]) -> T:
    known = {each.name for each in fields(form)}  # type: ignore[arg-type]
    return form(**{name: value for name, value in given.items() if name in known})


def _errand(given: Mapping[str, Any]) -> AgentTask:
    cost = given.get("most_cost")
    nano = None if cost is None else prices.dollars(float(cost))
    return _made(AgentTask, {**given, "most_cost": nano})
