"""`action`: what a collection does with each ready document.

A follow-up is a run of this kind on `document:42#action:3`, made in the transaction that published the
document. Its content names the generation it is for, its options are the action's. Which actions there are,
the registry says: any kind may bring some. This one brings `prompt`, `agent` and `analyse`; a
`webhook` has no runs of this kind, for its event is a delivery of its own (see `webhook`).
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from holdfast.core.errors import BadRequestError, WorkError
from holdfast.core.text import is_plain
from holdfast.documents import fetch
from holdfast.engine.job_specs import ActionSpec
from holdfast.engine.kinds import KEEP, Kind, Registry, Supplies
from holdfast.engine.models import Model
from holdfast.engine.ready_documents import Passage, ReadyDocument
from holdfast.engine.work import Work
from holdfast.kinds import agent, document_text, model_calls, prompt
from holdfast.kinds.agent import AgentTask, Search
from holdfast.kinds.log_phrases import many
from holdfast.kinds.prompt import PromptTask
from holdfast.ledger import prices
from holdfast.ledger.pay import Call
from holdfast.store.base.database import Database

NAME = "action"
VERSION = 1
MOST_INSTRUCTION = 20_000
MOST_NAME = 200
MOST_URL = 2000

Analyser = Callable[[str, Sequence[Passage]], Mapping[str, Any]]
"""A function over a document's text and its passages, whose JSON answer is kept."""
T = TypeVar("T")

_INSTRUCTION = {"type": "string", "minLength": 1, "maxLength": MOST_INSTRUCTION}
_ANSWER_TOKENS = {
    "type": "integer",
    "minimum": 1,
    "maximum": 100_000,
    "title": "Maximum tokens of an answer",
    "default": 1000,
}
PROMPT: Mapping[str, Any] = {
    "type": "object",
    "required": ["instruction"],
    "properties": {
        "instruction": {
            **_INSTRUCTION,
            "title": "Prompt for each document",
            "examples": ["Summarize this in three sentences."],
        },
        "part_tokens": {
            "type": "integer",
            "minimum": 200,
            "maximum": 200_000,
            "title": "Tokens read at once",
            "default": 6000,
        },
        "most_parts": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "title": "Maximum number of parts of a long document",
            "default": 40,
        },
        "answer_tokens": _ANSWER_TOKENS,
    },
}
AGENT: Mapping[str, Any] = {
    "type": "object",
    "required": ["instruction"],
    "properties": {
        "instruction": {**_INSTRUCTION, "title": "What the agent should find out"},
        "most_steps": {
            "type": "integer",
            "minimum": 2,
            "maximum": 50,
            "title": "Maximum model calls",
            "default": 8,
        },
        "most_cost": {"type": "number", "minimum": 0, "maximum": 1_000_000, "title": "Cost limit (US$)"},
        "answer_tokens": _ANSWER_TOKENS,
    },
}
HOOK: Mapping[str, Any] = {
    "type": "object",
    "required": ["url"],
    "properties": {
        "url": {
            "type": "string",
            "minLength": 1,
            "maxLength": MOST_URL,
            "title": "URL",
            "description": (
                "Each event is signed. The signing secret is shown once, after you add the webhook."
            ),
        }
    },
}
ANSWER_VIEW = '<span class="said-so">{{ result.answer }}</span>'
DELIVERY_VIEW = (
    "{% if result.status is defined %}HTTP {{ result.status }}, attempt {{ result.tries }}{% endif %}"
)


def checked_url(url: str) -> str:
    """The address as it is used; BadRequestError for what is none. Where it leads is judged at each try."""
    if len(url) > MOST_URL or not is_plain(url):
        raise BadRequestError(f"a url has at most {MOST_URL} characters", code="bad_params")
    try:
        return fetch.checked(url)
    except WorkError as error:
        raise BadRequestError(error.message, code="url_forbidden") from error


def _check_url(params: dict[str, Any]) -> dict[str, Any]:
    checked_url(params["url"])
    return params


def instruction_of(params: Mapping[str, Any]) -> str:
    """The parameters of an action."""
    return str(params.get("instruction") or "")


WEBHOOK = ActionSpec(
    name="webhook",
    title="Webhook",
    parameters=HOOK,
    check=_check_url,
    view=DELIVERY_VIEW,
    summary=lambda params: str(params["url"]),
)


def kind_of(registry: Registry, name: str) -> tuple[str, str]:
    """The kind and the pipeline of what follows by the action `name`: only who has its code may claim it."""
    kind, spec = registry.action(name)
    if spec.keeps is not None:
        return KEEP, kind.pipeline
    return (kind.name if spec.run is None else NAME), kind.pipeline


class ActionRunner:
    """The work of follow-ups, in one process. `registry` is asked when the work begins."""

    def __init__(
        self,
        db: Database,
        supplies: Supplies,
        *,
        analysers: Sequence[str] = (),
        search: Search,
        registry: Callable[[], Registry],
    ) -> None:
        self._db = db
        self._supplies = supplies
        self._analysers = tuple(analysers)
        self._search = search
        self._registry = registry

    def kind(self) -> Kind:
        """The kind to register."""
        return Kind(NAME, self.run, version=VERSION, actions=self._specs())

    def _specs(self) -> list[ActionSpec]:
        return [
            ActionSpec(
                name="prompt",
                title="Prompt",
                parameters=PROMPT,
                run=_run_prompt,
                asks_model=True,
                estimate=_estimate_prompt,
                view=ANSWER_VIEW,
                summary=instruction_of,
            ),
            ActionSpec(
                name="agent",
                title="Agent",
                parameters=AGENT,
                run=self._run_agent,
                asks_model=True,
                estimate=_estimate_agent,
                view=ANSWER_VIEW,
                summary=instruction_of,
            ),
            *([self._analyse()] if self._analysers else ()),
        ]

    def _analyse(self) -> ActionSpec:
        analyser = {
            "type": "string",
            "minLength": 1,
            "maxLength": MOST_NAME,
            "title": "Function",
            "description": "One of the functions that HOLDFAST_ANALYSERS lists.",
            "examples": list(self._analysers),
        }
        return ActionSpec(
            name="analyse",
            title="Analyse",
            parameters={"type": "object", "required": ["analyser"], "properties": {"analyser": analyser}},
            run=self._run_analyser,
            check=self._check_analyser,
            view="{{ ui.fields(result.found) }}",
            summary=lambda params: str(params["analyser"]),
        )

    def run(self, work: Work) -> dict[str, Any]:
        """One follow-up."""
        name = str(work.options.get("sort"))
        spec = self._registry().actions.get(name)
        if spec is None or spec.run is None:
            message = f"this worker does not support the action {name!r}; upgrade it or install its package"
            raise WorkError(message, code="unknown_action")
        document = document_text.read(self._db, work.claim.tenant, work.content)
        work.note(f"read {many(len(document.passages), 'chunk')} of {many(document.pages, 'page')}")
        result = spec.run(work, document, self._model(work) if spec.asks_model else None)
        work.note(f"{name} done: {many(work.spent.paid_calls, 'call')} paid")
        return dict(result)

    def _model(self, work: Work) -> Model:
        try:
            return model_calls.chosen(self._supplies, work.options)
        except BadRequestError as error:  # the settings of this worker have changed since it was asked for
            raise WorkError(error.message, code=error.code) from error

    def _run_agent(self, work: Work, document: ReadyDocument, model: Model | None) -> dict[str, Any]:
        return agent.Agent(self._db, work, document, self._search).run(
            model_calls.required(model), _errand(work.options)
        )

    def _check_analyser(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["analyser"] not in self._analysers:
            message = (
                f"the analyser {params['analyser']!r} is not registered; the setting "
                "HOLDFAST_ANALYSERS lists them"
            )
            raise BadRequestError(message, code="unknown_analyser")
        return params

    def _run_analyser(self, work: Work, document: ReadyDocument, _model: Model | None) -> dict[str, Any]:
        path = str(work.options["analyser"])
        answer: object = load_analyser(path, self._analysers)(document.text, document.passages)
        if not isinstance(answer, Mapping):
            message = f"the analyser {path} must return a mapping, not {type(answer).__name__}"
            raise WorkError(message, code="bad_result")
        return {"analyser": path, "found": dict(answer)}


def _run_prompt(work: Work, document: ReadyDocument, model: Model | None) -> dict[str, Any]:
    return prompt.run(work, model_calls.required(model), _record(PromptTask, work.options), document)


def _estimate_prompt(
    params: Mapping[str, Any], document: ReadyDocument, model: Model | None
) -> tuple[Sequence[Call], bool]:
    return prompt.foreseen(model_calls.required(model), _record(PromptTask, params), document)


def _estimate_agent(
    params: Mapping[str, Any], document: ReadyDocument, model: Model | None
) -> tuple[Sequence[Call], bool]:
    return [agent.first_question(model_calls.required(model), _errand(params), document)], False


def load_analyser(path: str, registered: Sequence[str]) -> Analyser:
    """The function at `module:name`, if it is registered; WorkError that says what is wrong otherwise."""
    if path not in registered:
        message = (
            f"the analyser {path} is not registered on this worker; the setting HOLDFAST_ANALYSERS lists them"
        )
        raise WorkError(message, code="unknown_analyser")
    module, _, name = path.partition(":")
    try:
        analyser: Analyser = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        message = f"the analyser {path} cannot be imported ({error}); it must look like module:name"
        raise WorkError(message, code="unknown_analyser") from error
    return analyser


def _record(form: type[T], params: Mapping[str, Any]) -> T:
    known = {each.name for each in fields(form)}  # type: ignore[arg-type]
    return form(**{name: value for name, value in params.items() if name in known})


def _errand(params: Mapping[str, Any]) -> AgentTask:
    cost = params.get("most_cost")
    nano = None if cost is None else prices.dollars(float(cost))
    return _record(AgentTask, {**params, "most_cost": nano})
