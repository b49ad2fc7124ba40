"""Paid parsing: the call of a paid service that a parser of the user's own needs, made through the ledger.

The content key has the digest of the file, the parser, its version, the request and the identity of the
provider. So a file is paid for once, in any document of the tenant, however often it is indexed again.
"""

from collections.abc import Mapping

from holdfast.core.errors import MustWaitError, WorkError
from holdfast.documents.parse.paid import PaidAnswer, PaidRequest
from holdfast.engine.work import Work
from holdfast.kinds.log_phrases import many
from holdfast.ledger.pay import Call
from holdfast.providers import documents

# What a task waits for whose parser's provider cannot be reached.
WAITS_FOR = "parser"


def call(request: PaidRequest, content: str, services: Mapping[str, str]) -> Call:
    """The call for a file with this digest; WorkError `no_provider` if its provider is not set up."""
    identity = services.get(request.provider)
    if identity is None:
        known = ", ".join(sorted(services)) or "none"
        raise WorkError(
            f"the parser {request.parser} needs the provider {request.provider!r}, which is not set up here;"
            f' add [providers.{request.provider}] with wire = "documents" to the settings (known: {known})',
            code="no_provider",
        )
    return Call(identity, request.endpoint, request.model, content, request.params, request.pages or None)


def answer(work: Work, request: PaidRequest, services: Mapping[str, str]) -> PaidAnswer:
    """What the service answers for the document of this work, paid for once."""
    needed = call(request, work.content, services)
    unit = f"pages read by {request.provider}"
    before = work.spent
    line = f"waiting for {request.provider} to read the file for the parser {request.parser}"
    work.progress(0, max(1, request.pages), unit=unit, line=line)
    try:
        (result,) = work.pay([needed])
    except MustWaitError as wait:
        if wait.reason != "provider":
            raise
        raise MustWaitError(wait.message, reason=WAITS_FOR, delay=wait.delay) from wait
    if work.spent.paid_calls > before.paid_calls:
        work.note(f"{request.provider} has read {many(max(1, request.pages), 'page')}: paid")
    elif work.spent.reused_calls > before.reused_calls:
        work.note(f"the answer of {request.provider} was paid for before: reused")
    return PaidAnswer(needed.key(work.claim.tenant), documents.content(result))
