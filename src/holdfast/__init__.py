"""Holdfast: background work on documents that is paid for once, never lost and never half visible.

What can be imported from here and from `holdfast.testing` is public (docs/reference/python.md). Everything
else is private and may change with any release. Names are loaded when they are first used, so that
`import holdfast` is quick.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.core.errors import (
        BadRequestError,
        DrainingError,
        FencedOutError,
        HoldfastError,
        LeaseLostError,
        MustWaitError,
        NotFoundError,
        NotReadyError,
        ProviderRefusedError,
        ResultTooLargeError,
        SchemaError,
        StoreLockedError,
        StoreTimeoutError,
        StoreUnavailableError,
        TimeLimitError,
        WorkError,
        WorkStopped,
    )
    from holdfast.core.records import Chunk, Claim, EarlierSlice, RequestResult, Slice
    from holdfast.engine.job_specs import ActionSpec, JobSpec, SearchQuery, SearchSource, SourceHit
    from holdfast.engine.kinds import Finish, Kind, Supplies
    from holdfast.engine.models import Model
    from holdfast.engine.ready_documents import Passage, ReadyDocument
    from holdfast.engine.work import Work
    from holdfast.extras import MissingExtraError
    from holdfast.guard.function_provider import Answer
    from holdfast.guard.guard import Guard
    from holdfast.guard.run import Run
    from holdfast.guard.signals import Duplicate, FencedOut, InDoubt, MustWait
    from holdfast.guard.task import GuardedTask
    from holdfast.kinds.document_kind import JobResult, document_kind, published_results
    from holdfast.kinds.model_calls import question as model_call
    from holdfast.kinds.model_calls import text as answer_text
    from holdfast.kinds.model_calls import value as answer_json
    from holdfast.ledger.pay import Call
    from holdfast.providers.base import Profile, Provider
    from holdfast.providers.openai import OpenAIProvider
    from holdfast.scripting import Holdfast, JobState, SubjectState, TaskResult, open  # noqa: A004 - holdfast.open
    from holdfast.store.base.database import Tx

    __version__: str

__all__ = [
    "ActionSpec",
    "Answer",
    "BadRequestError",
    "Call",
    "Chunk",
    "Claim",
    "DrainingError",
    "Duplicate",
    "EarlierSlice",
    "FencedOut",
    "FencedOutError",
    "Finish",
    "Guard",
    "GuardedTask",
    "Holdfast",
    "HoldfastError",
    "InDoubt",
    "JobResult",
    "JobSpec",
    "JobState",
    "Kind",
    "LeaseLostError",
    "MissingExtraError",
    "Model",
    "MustWait",
    "MustWaitError",
    "NotFoundError",
    "NotReadyError",
    "OpenAIProvider",
    "Passage",
    "Profile",
    "Provider",
    "ProviderRefusedError",
    "ReadyDocument",
    "RequestResult",
    "ResultTooLargeError",
    "Run",
    "SchemaError",
    "SearchQuery",
    "SearchSource",
    "Slice",
    "SourceHit",
    "StoreLockedError",
    "StoreTimeoutError",
    "StoreUnavailableError",
    "SubjectState",
    "Supplies",
    "TaskResult",
    "TimeLimitError",
    "Tx",
    "Work",
    "WorkError",
    "WorkStopped",
    "__version__",
    "answer_json",
    "answer_text",
    "document_kind",
    "model_call",
    "open",
    "published_results",
]

if not TYPE_CHECKING:  # or a type checker would believe that every name exists
    _MODULES = {
        "core.records": ("Chunk", "Claim", "EarlierSlice", "RequestResult", "Slice"),
        "engine.job_specs": ("ActionSpec", "JobSpec", "SearchQuery", "SearchSource", "SourceHit"),
        "engine.kinds": ("Finish", "Kind", "Supplies"),
        "engine.models": ("Model",),
        "engine.ready_documents": ("Passage", "ReadyDocument"),
        "engine.work": ("Work",),
        "extras": ("MissingExtraError",),
        "guard.function_provider": ("Answer",),
        "guard.guard": ("Guard",),
        "guard.run": ("Run",),
        "guard.signals": ("Duplicate", "FencedOut", "InDoubt", "MustWait"),
        "guard.task": ("GuardedTask",),
        "kinds.document_kind": ("JobResult", "document_kind", "published_results"),
        "kinds.model_calls": ("answer_json", "answer_text", "model_call"),
        "ledger.pay": ("Call",),
        "providers.base": ("Profile", "Provider"),
        "providers.openai": ("OpenAIProvider",),
        "scripting": ("Holdfast", "JobState", "SubjectState", "TaskResult", "open"),
        "store.base.database": ("Tx",),
    }
    # Names that say here what their module says there.
    _NAME_OF = {"answer_json": "value", "answer_text": "text", "model_call": "question"}
    _MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name: str) -> object:
        import importlib.metadata  # noqa: PLC0415 - costs more than the rest of this module

        if name == "__version__":
            value = importlib.metadata.version("holdfast")
        elif name in __all__:
            module = importlib.import_module(f"holdfast.{_MODULE_OF.get(name, 'core.errors')}")
            value = getattr(module, _NAME_OF.get(name, name))
        else:
            raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
