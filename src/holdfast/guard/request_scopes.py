"""When two identical requests are one call.

Answers of repeatable endpoints, such as embeddings, are reused within the tenant. Of all others repeating a
request may be meant: within a run the nth identical request is its own call, and when the run is executed
again it gets the answer of the nth; outside a run answers are reused only within a named scope. A request
that failed is the same call when it is tried again, by the application or by its client library.
"""

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping

from holdfast.core import keys
from holdfast.core.ports import Host
from holdfast.guard import context, occurrences, payers
from holdfast.llm_requests.wire_keys import Reuse, SdkRequest

# Failed requests outside runs and scopes of which it is remembered which call they were.
MOST_FAILED = 1000


class RequestScopes:
    """Which call a request is, for the requests of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failed: OrderedDict[str, list[str]] = OrderedDict()

    @contextlib.contextmanager
    def of(self, request: SdkRequest, host: Host) -> Iterator[Mapping[str, object]]:
        """The rest of the request's key. If the block raises, the request was not answered."""
        work, again, scope = payers.current_work(), context.pays_again(), context.scope()
        if request.reuse is Reuse.TENANT and not (work is not None and again):
            yield {}
            return
        content = keys.digest(request.provider, keys.spelled(request.params), request.model, request.text)
        if work is not None:
            shared: dict[str, object] = {"run": work.claim.run_id}
            if scope is not None and not again:
                shared = {"scope": scope}
            if again:
                shared["again"] = True
            with occurrences.of(work).numbered(keys.digest(content, keys.canonical(shared))) as number:
                yield {**shared, "number": number}
        elif scope is not None:
            yield {"scope": scope}
        else:
            with self._single(content, host) as call:
                yield {"call": call}

    @contextlib.contextmanager
    def _single(self, content: str, host: Host) -> Iterator[str]:
        """The name of a single call: a new one, or that of a call with this content that failed."""
        with self._lock:
            failed = self._failed.get(content)
            call = failed.pop() if failed else host.token()
        answered = False
        try:
            yield call
            answered = True
        finally:
            if not answered:
                with self._lock:
                    self._failed.setdefault(content, []).append(call)
                    self._failed.move_to_end(content)
                    while len(self._failed) > MOST_FAILED:
                        self._failed.popitem(last=False)
