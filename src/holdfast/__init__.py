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
    from holdfast.engine.kinds import Finish, Kind
    from holdfast.engine.work import Work
    from holdfast.extras import MissingExtraError
    from holdfast.ledger.pay import Call
    from holdfast.providers.base import Profile, Provider
    from holdfast.providers.openai import OpenAIProvider
    from holdfast.scripting import Holdfast, SubjectState, TaskResult, open  # noqa: A004 - holdfast.open
    from holdfast.store.base.database import Tx

    __version__: str

__all__ = [
    "BadRequestError",
    "Call",
    "Chunk",
    "Claim",
    "DrainingError",
    "EarlierSlice",
    "FencedOutError",
    "Finish",
    "Holdfast",
    "HoldfastError",
    "Kind",
    "LeaseLostError",
    "MissingExtraError",
    "MustWaitError",
    "NotFoundError",
    "NotReadyError",
    "OpenAIProvider",
    "Profile",
    "Provider",
    "ProviderRefusedError",
    "RequestResult",
    "ResultTooLargeError",
    "SchemaError",
    "Slice",
    "StoreLockedError",
    "StoreTimeoutError",
    "StoreUnavailableError",
    "SubjectState",
    "TaskResult",
    "TimeLimitError",
    "Tx",
    "Work",
    "WorkError",
    "WorkStopped",
    "__version__",
    "open",
]

# Names of the library for Celery applications. Nothing else may bear them meanwhile.
RESERVED = (
    "Answer",
    "Duplicate",
    "FencedOut",
    "Guard",
    "GuardedTask",
    "InDoubt",
    "MustWait",
    "Run",
)

if not TYPE_CHECKING:  # or a type checker would believe that every name exists
    _MODULES = {
        "core.records": ("Chunk", "Claim", "EarlierSlice", "RequestResult", "Slice"),
        "engine.kinds": ("Finish", "Kind"),
        "engine.work": ("Work",),
        "extras": ("MissingExtraError",),
        "ledger.pay": ("Call",),
        "providers.base": ("Profile", "Provider"),
        "providers.openai": ("OpenAIProvider",),
        "scripting": ("Holdfast", "SubjectState", "TaskResult", "open"),
        "store.base.database": ("Tx",),
    }
    _MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name: str) -> object:
        import importlib.metadata  # noqa: PLC0415 - costs more than the rest of this module

        if name == "__version__":
            value = importlib.metadata.version("holdfast")
        elif name in RESERVED:
            # ImportError, for `from holdfast import` would say an AttributeError in words of its own.
            raise ImportError(f"holdfast.{name} is reserved and not built yet", name=__name__)
        elif name in __all__:
            module = importlib.import_module(f"holdfast.{_MODULE_OF.get(name, 'core.errors')}")
            value = getattr(module, name)
        else:
            raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
