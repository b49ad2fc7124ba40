"""Who pays for a call: the run that is being executed here, or a caller without one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.core.errors import MustWaitError
from holdfast.engine.work import Work
from holdfast.guard import context
from holdfast.guard.run import signalling
from holdfast.guard.signals import InDoubt
from holdfast.ledger import traced_provider
from holdfast.ledger.pay import Call
from holdfast.ledger.query_payer import QueryPayer
from holdfast.llm_requests import payments
from holdfast.providers.base import Provider

if TYPE_CHECKING:
    from holdfast.guard.guard import Guard


def current_work() -> Work | None:
    """The work of the guarded task that is being executed here, if one is."""
    execution = context.execution()
    return None if execution is None else execution.work


def pay(guard: "Guard", provider: Provider, calls: Sequence[Call], *, patience: float) -> tuple[bytes, ...]:
    """The results of the calls, each paid once for the tenant.

    Within a run what ends its execution is raised as a signal. Outside, the caller waits up to `patience`
    seconds for a call that somebody else is paying for, and an order that waits for a person is InDoubt.
    """
    engine, tenant = guard.runtime().engine, guard.tenant_name()
    ledger, work = engine.ledger.serving(traced_provider.traced(provider)), current_work()
    if work is not None and work.claim.tenant == tenant:
        with signalling():
            return work.pay(calls, ledger)
    holder = QueryPayer(engine.host, tenant, None, patience)
    try:
        return payments.pay(ledger, holder, calls, patience=patience).results
    except MustWaitError as error:
        if error.reason == "parked":
            raise InDoubt(error.message) from error
        raise
