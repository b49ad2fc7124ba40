"""Paying outside a task: a caller who waits, also for what somebody else is paying for."""

from collections.abc import Sequence

from holdfast.clock import boot_time
from holdfast.core.errors import MustWaitError
from holdfast.ledger.pay import Call, Ledger, Payment
from holdfast.ledger.query_payer import QueryPayer


def pay(ledger: Ledger, holder: QueryPayer, calls: Sequence[Call], *, patience: float) -> Payment:
    """The results of the calls, each paid once for the tenant; MustWaitError as from `Ledger.pay`.

    The caller waits up to `patience` seconds for calls that somebody else is paying for.
    """
    until = boot_time() + patience
    while True:
        try:
            return ledger.pay(holder, calls)
        except MustWaitError as error:
            if error.reason != "intent" or not holder.trusted() or boot_time() >= until:
                raise
