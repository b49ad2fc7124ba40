"""What the workers of these tests are told to do."""

import time
from typing import Any

from holdfast.engine.kinds import Kind, Supplies
from holdfast.engine.work import Work
from holdfast.ledger.pay import Call

MODEL = "text-embedding-3-small"
FOR_EVER = 600.0


def nap(work: Work) -> None:
    """A pause of as many seconds as the options say, with a look round every now and then."""
    end = time.monotonic() + float(work.options.get("seconds", 0.0))
    while (left := end - time.monotonic()) > 0:
        work.check()
        time.sleep(min(left, 0.02))


def stubborn(work: Work) -> None:
    """Sleeps where no signal and no check reaches it, as a hanging C call does."""
    end = time.monotonic() + FOR_EVER
    while time.monotonic() < end:
        time.sleep(FOR_EVER)


def kinds(supplies: Supplies) -> list[Kind]:
    """All of them, paying at the provider of the settings."""

    def paid(work: Work) -> dict[str, Any]:
        for number in range(int(work.options.get("batches", 2))):
            text = f"{work.content} {number}"
            work.pay([Call(supplies.embedding or "", "embeddings", MODEL, text)])
            work.progress(number + 1, int(work.options.get("batches", 2)))
        return {}

    return [
        Kind("nap", nap),
        Kind("paid", paid),
        Kind("late", nap, soft_limit=0.3, hard_limit=60.0),
        Kind("stuck", stubborn, soft_limit=0.3, hard_limit=0.6),
        Kind("deafening", stubborn),
    ]


NAP_ONLY = Kind("nap", nap)
OTHER_ONLY = [Kind("other", nap)]
NOT_A_KIND = 42
TWICE = [NAP_ONLY, Kind("nap", nap)]


def broken(_: Supplies) -> Kind:
    """A mistake in the user's own function."""
    raise ZeroDivisionError("a mistake of the user")
