"""The kinds of the scenarios: what a worker is told to do, and what must come of it.

`paper` is the usual work: slices of several paid batches each. Its texts follow from content and options
alone, so that the oracle can tell what must be published and what may be charged. `nap` pays nothing,
`poison` kills its own process, `hang` holds still past its hard limit.
"""

import hashlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.records import Chunk, Slice
from holdfast.engine.kinds import Kind, Supplies
from holdfast.engine.work import Work
from holdfast.ledger.pay import Call

ENDPOINT = "embeddings"
MODEL = "text-embedding-3-small"
NAP = 0.02
FOR_EVER = 600.0
HANG_LIMIT = 4.0


def texts(content: str, options: Mapping[str, Any], number: int) -> list[list[str]]:
    """The paid inputs of slice `number`, batch by batch."""
    batches, inputs = int(options.get("batches", 1)), int(options.get("inputs", 2))
    return [
        [f"{content} slice {number} batch {batch} input {index}" for index in range(inputs)]
        for batch in range(batches)
    ]


def all_texts(content: str, options: Mapping[str, Any]) -> list[str]:
    """Every paid input of a paper, in the order in which it is read."""
    slices = range(int(options.get("slices", 1)))
    return [text for number in slices for batch in texts(content, options, number) for text in batch]


def chunk_text(text: str, result: bytes) -> str:
    """What is staged for a text: the text, and the mark of what was bought for it."""
    return f"{text} {hashlib.sha256(result).hexdigest()[:12]}"


def plan(work: Work) -> Sequence[Slice]:
    """One slice each, numbered."""
    return [Slice({"number": number}) for number in range(int(work.options.get("slices", 1)))]


def kinds(supplies: Supplies) -> list[Kind]:
    """All of them, paying at the provider of the settings."""

    def paper(work: Work) -> dict[str, int]:
        batches = texts(work.content, work.options, int(work.payload["number"]))
        pause = float(work.options.get("seconds", 0.0)) / len(batches)
        position = 0
        for number, batch in enumerate(batches):
            results = work.pay([Call(supplies.embedding or "", ENDPOINT, MODEL, text) for text in batch])
            bought = [chunk_text(text, result) for text, result in zip(batch, results, strict=True)]
            work.stage([Chunk(position + index, text) for index, text in enumerate(bought)])
            position += len(batch)
            work.progress(number + 1, len(batches), unit="batches")
            _rest(work, pause)
        return {"inputs": position}

    return [
        Kind("paper", paper, plan),
        Kind("nap", nap, plan),
        Kind("poison", poison),
        Kind("hang", hang, soft_limit=HANG_LIMIT - 1, hard_limit=HANG_LIMIT),
    ]


def nap(work: Work) -> None:
    """A pause of as many seconds as the options say; none is a no-op."""
    _rest(work, float(work.options.get("seconds", 0.0)))


def poison(_: Work) -> None:
    """The process that runs this is gone."""
    os.kill(os.getpid(), signal.SIGKILL)


def hang(_: Work) -> None:
    """Holds still, and never looks whether it may go on."""
    time.sleep(FOR_EVER)


def _rest(work: Work, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        work.check()
        time.sleep(min(left, NAP))
