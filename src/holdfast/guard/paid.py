"""`@guard.paid`: a function that costs money is called once for each distinct input of a tenant.

The arguments are the content key, the result is kept as JSON and given to every later caller. An answer that
`accept` refuses stays in the bill and is passed over: the next caller pays for the next version.
"""

import asyncio
import functools
import inspect
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import BadRequestError, HoldfastError
from holdfast.core.keys import canonical
from holdfast.guard import context, function_provider, money, occurrences, payers, threads
from holdfast.guard.function_provider import Answer, FunctionProvider, OrderFacts, VerifiedFunctionProvider
from holdfast.ledger.pay import Call
from holdfast.ledger.prices import Price
from holdfast.providers.base import Profile

if TYPE_CHECKING:
    from holdfast.guard.guard import Guard

TIMEOUT = 600.0
Verify = Callable[[OrderFacts], Answer | None]


@dataclass(frozen=True, slots=True)
class PaidOptions:
    """How a paid function is paid for; see `Guard.paid`."""

    name: str
    price: int | None = None
    verify: Verify | None = None
    accept: Callable[[Any], bool] | None = None
    uncharged: tuple[type[BaseException], ...] = ()
    timeout: float = TIMEOUT
    key_argument: str | None = None


class PaidFunction:
    """The declaration of a paid function."""

    def __init__(self, guard: "Guard", function: Callable[..., Any], options: PaidOptions) -> None:
        self._guard = guard
        self._function = function
        self._options = options
        self._signature = inspect.signature(function)
        if options.key_argument is not None and options.key_argument not in self._signature.parameters:
            message = f"{options.name} has no parameter {options.key_argument!r} for the idempotency key"
            raise BadRequestError(message, code="bad_option")
        keyed = options.key_argument is not None
        self._profile = Profile(
            name=function_provider.PROVIDER,
            honours_keys=keyed,
            key_retention=function_provider.DAY if keyed else 0.0,
            max_inputs=1,
            max_tokens=1,
            deadline=options.timeout,
        )

    def wrapped(self) -> Callable[..., Any]:
        """The function as callers see it, a coroutine function if it is one."""

        @functools.wraps(self._function)
        def called(*args: Any, **kwargs: Any) -> Any:
            return self._pay(args, kwargs, None)

        @functools.wraps(self._function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            loop = asyncio.get_running_loop()
            return await threads.in_thread(lambda: self._pay(args, kwargs, loop))

        return awaited if inspect.iscoroutinefunction(self._function) else called

    def _pay(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], loop: asyncio.AbstractEventLoop | None
    ) -> Any:
        """The value for these arguments: the one that was paid for before, or that of a call made now."""
        text = self._text(args, kwargs)

        def call(idempotency_key: str) -> Any:
            result = self._function(*args, **{**kwargs, **self._keyed(idempotency_key)})
            return result if loop is None else threads.in_loop(loop, result)

        work = payers.current_work()
        if work is None or not context.pays_again():
            return self._kept_or_paid(text, {}, call)
        numbers = occurrences.of(work)
        content = f"{self._options.name} {text}"
        with numbers.numbered(content) as number:
            return self._kept_or_paid(text, {"run": work.claim.run_id, "again": number}, call)

    def _kept_or_paid(self, text: str, params: Mapping[str, object], call: Callable[[str], Any]) -> Any:
        for version in itertools.count():
            versioned = {**params, "version": version} if version else params
            provider = self._provider(call)
            answer = self._answer(text, versioned, provider)
            if provider.has_answered and "value" not in answer:
                message = (
                    f"{self._options.name} was paid, but its answer cannot be kept: {answer['unusable']}"
                )
                raise BadRequestError(message, code="not_json")
            if provider.has_answered or ("value" in answer and self._accepts(answer["value"])):
                return answer["value"]
        raise AssertionError("versions do not end")

    def _answer(self, text: str, params: Mapping[str, object], provider: FunctionProvider) -> dict[str, Any]:
        options = self._options
        ordered = Call(
            function_provider.PROVIDER, function_provider.ENDPOINT, options.name, text, params, options.price
        )
        try:
            results = payers.pay(self._guard, provider, [ordered], patience=options.timeout)
        except HoldfastError:
            if provider.error is None:
                raise
            results = ()
        if provider.error is not None:
            raise provider.error  # not from the ledger's: it is the function's own
        answer: dict[str, Any] = json.loads(results[0])
        return answer

    def _provider(self, call: Callable[[str], Any]) -> FunctionProvider:
        options = self._options
        rest: dict[str, Any] = {"price": options.price, "uncharged": options.uncharged}
        if options.verify is None:
            return FunctionProvider(self._profile, call, **rest)
        return VerifiedFunctionProvider(self._profile, call, **rest, verify=options.verify)

    def _keyed(self, idempotency_key: str) -> dict[str, str]:
        """The argument that passes the key of the order on to the provider, if the function takes one."""
        return {} if self._options.key_argument is None else {self._options.key_argument: idempotency_key}

    def _accepts(self, value: Any) -> bool:
        return self._options.accept is None or bool(self._options.accept(value))

    def _text(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """The arguments as canonical JSON, by the names of the parameters, with their defaults."""
        bound = self._signature.bind(*args, **{**kwargs, **self._keyed("")})
        bound.apply_defaults()
        arguments = {
            name: value for name, value in bound.arguments.items() if name != self._options.key_argument
        }
        for name, value in arguments.items():
            if not _has_text_keys(value):
                message = f"the argument {name!r} of {self._options.name} has keys that are no strings"
                raise BadRequestError(message, code="not_json")
        return canonical(arguments)


def _has_text_keys(value: Any) -> bool:
    """True if no two values that differ would be written as the same JSON: 1 and "1" as keys."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _has_text_keys(each) for key, each in value.items())
    return not isinstance(value, (list, tuple)) or all(map(_has_text_keys, value))


def declared(guard: "Guard", function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """The function, paid once for each distinct input; BadRequestError for options that make no sense."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadRequestError(
            "a paid function answers one value; it cannot be a generator", code="bad_option"
        )
    price, timeout = options.pop("price", None), options.pop("timeout", None) or TIMEOUT
    name = options.pop("name", None) or f"{function.__module__}.{function.__qualname__}"
    if not timeout > 0:
        raise BadRequestError(f"timeout={timeout!r} is no number of seconds", code="bad_option")
    uncharged = options.pop("uncharged", ())
    uncharged = (uncharged,) if isinstance(uncharged, type) else tuple(uncharged)
    complete = PaidOptions(
        name=name,
        price=None if price is None else money.nanos(price),
        timeout=float(timeout),
        uncharged=uncharged,
        **options,
    )
    origin = f"{function.__module__}.{function.__qualname__}"
    if guard.paid_functions.setdefault(name, origin) != origin:
        message = (
            f"two paid functions are called {name!r}: {guard.paid_functions[name]} and {origin}; name one"
        )
        raise BadRequestError(message, code="paid_name_taken")
    guard.function_prices[name] = PRICE
    return PaidFunction(guard, function, complete).wrapped()


# A unit is a nano-dollar: what a call costs is what it says.
PRICE = Price(0, 0, unit=1)
