"""Answers to questions, with citations that were checked: search, at most one paid call, and a check.

What is found decides whether anybody is paid: without a good match there is no call. The prompt has nothing
but content in a fixed order, so that the ledger answers the same question over the same sources for nothing.
The call is streamed, and read to its end also if nobody listens any more: what was paid for is settled.

The nth answer to the same question has its own content key (`again`). A plain question gets the last one that
is settled; `fresh` orders the first that nobody has asked for. So two who ask for a fresh answer at the same
moment pay for one, and a fresh answer that a crash interrupted before it was sent is continued. One that may
have been charged is in doubt: asking for a fresh one again orders another.
"""

from dataclasses import replace

from holdfast.core.errors import BadRequestError, HoldfastError, MustWaitError
from holdfast.core.records import Spent
from holdfast.core.states import CallState
from holdfast.core.text import plain
from holdfast.engine.engine import Engine
from holdfast.engine.kinds import Supplies
from holdfast.engine.models import Model
from holdfast.kinds import index, model_calls
from holdfast.ledger.pay import Call, Payment
from holdfast.ledger.query_payer import StreamPayer
from holdfast.providers import event_stream
from holdfast.search import answer_prompt, citations
from holdfast.search.answer_prompt import NO_ANSWER, PromptSource
from holdfast.search.hits import Hit
from holdfast.service import reranking
from holdfast.service.answers import (
    MOST_QUESTION,
    AnswerCost,
    AnswerPiece,
    AnswerSource,
    AskRequest,
    CitedAnswer,
    Heard,
    nobody,
)
from holdfast.service.search import Searching
from holdfast.service.search_pages import SearchPage, SearchRequest

# Seconds that a caller waits beyond the deadline of the order itself.
GRACE = 5.0
# Answers to one question that are looked up at once.
AT_ONCE = 16
# An answer that says little more than that there is none.
SHORT_REFUSAL = 40
# Sentences that may come twice before the answer counts as repetitive.
FEW_REPEATED = 2
RETRY = "ask again later: what was paid is not paid again"
FREE_KEYS = frozenset({None, CallState.VOID, CallState.INTENT, CallState.SENT})


class Asking:
    """Answers questions about collections."""

    def __init__(self, engine: Engine, search: Searching, supplies: Supplies) -> None:
        self._engine = engine
        self._search = search
        self._supplies = supplies

    def ask(self, request: AskRequest, heard: Heard = nobody) -> CitedAnswer:
        """The answer; `heard` is told its sources and then its text as they come.

        Raises NotFoundError for a collection that is not the tenant's, `over_budget`, `answer_in_doubt`,
        `answer_unavailable`, or what the provider or the model got wrong.
        """
        question = plain(request.question).strip()
        if not question or len(question) > MOST_QUESTION:
            message = f"ask a question of 1 to {MOST_QUESTION:,} characters"
            raise BadRequestError(message, code="bad_request")
        model = model_calls.model(self._supplies)
        pages = self._pages(request, question)
        searched = sum((page.spent for page in pages), Spent())
        notices = pages[-1].notices
        hits = pages[-1].hits
        # A report all of whose documents have changed since cannot be cited.
        good = _in_context([hit for hit in hits if not hit.weak and (hit.passages or not hit.node)])
        sources = tuple(AnswerSource.of(n, hit) for n, hit in enumerate(good, start=1))
        heard(sources)
        if not sources:
            reason = "weak_matches" if hits else "nothing_found"
            cost = AnswerCost.of(searched)
            return CitedAnswer("", (), (), True, reason, cost, False, model.stand_in, notices=notices)
        call = self._call(request, question, model, sources, searched)
        payer = reranking.main_collection(good, request.collections)
        payment = self._paid(request, call, payer, heard)
        answer = _checked(payment, sources, stand_in=model.stand_in)
        output = model_calls.answer(payment.results[0]).output_tokens
        # A result of the ledger is not paid for, and its tokens are not part of the cost.
        cost = AnswerCost.of(searched + payment.spent, min(output, payment.spent.tokens))
        return replace(answer, cost=cost, notices=notices, billed_to=payer)

    def _pages(self, request: AskRequest, question: str) -> list[SearchPage]:
        """What answers the question, last; a short one after another is looked for together with it."""
        pages = [self._search_for(request, question)]
        earlier = next((text for role, text in reversed(request.turns) if role == "user"), "")
        if earlier and all(hit.weak for hit in pages[0].hits):
            pages.append(self._search_for(request, f"{earlier}\n{question}"[:MOST_QUESTION]))
        return pages

    def _search_for(self, request: AskRequest, text: str) -> SearchPage:
        query = SearchRequest(
            request.tenant,
            request.collections,
            text,
            k=request.k,
            documents=request.documents,
            only=request.only,
            mode=request.mode,
            graph=request.graph,
            sources=[index.CHUNKS],
            rerank=request.rerank,
            max_cost=request.max_cost,
        )
        return self._search.find(query)

    def _call(
        self,
        request: AskRequest,
        question: str,
        model: Model,
        sources: tuple[AnswerSource, ...],
        searched: Spent,
    ) -> Call:
        """The paid call: the one whose answer is known, or the first that nobody has asked for."""
        passages = [PromptSource(each.title, each.text) for each in sources]
        hint = {"do": "answer", "question": question, "sources": [[each.n, each.text] for each in sources]}
        first = model_calls.question(
            model,
            answer_prompt.INSTRUCTION,
            answer_prompt.user_message(question, passages, request.turns),
            max_tokens=request.max_tokens,
            hint=hint,
        )
        first = replace(first, params=_streamed(model, first.params))
        known, state = self._known(request, first)
        if state is not CallState.SETTLED and request.max_cost is not None:
            self._check_cost(known, request.max_cost - searched.paid)
        return known

    def _known(self, request: AskRequest, first: Call) -> tuple[Call, CallState | None]:
        """The call of the latest settled answer, or the first; with `fresh` the next that may be ordered."""
        number = 0
        latest: Call | None = None
        oldest: CallState | None = None
        while True:
            calls = [_nth(first, each) for each in range(number, number + AT_ONCE)]
            states = self._engine.ledger.states(request.tenant, calls)
            oldest = states[0] if number == 0 else oldest
            for call, state in zip(calls, states, strict=True):
                if request.fresh and state in FREE_KEYS:
                    return call, state
                if state is CallState.SETTLED:
                    latest = call
                elif state is None:
                    return (first, oldest) if latest is None else (latest, CallState.SETTLED)
            number += AT_ONCE

    def _check_cost(self, call: Call, most: int) -> None:
        cost = self._engine.ledger.estimate(call)
        if cost is None:
            message = "the question has a `max_cost`, but no price is known for the model"
            raise HoldfastError(message, code="unpriced")
        if cost > most:
            message = "the answer may cost more than `max_cost`; raise it, or ask with fewer sources (`k`)"
            raise HoldfastError(message, code="over_budget")

    def _paid(self, request: AskRequest, call: Call, collection: str, heard: Heard) -> Payment:
        """The settled answer; its text was heard, as it came or now."""
        ledger = self._engine.ledger
        pieces = _Pieces(heard)
        payer = StreamPayer(
            self._engine.host,
            request.tenant,
            collection,
            ledger.provider(call.provider).profile.deadline + GRACE,
            pieces.hear,
        )
        while True:
            try:
                payment = ledger.pay(payer, [call])
                break
            except MustWaitError as error:
                if error.reason == "intent" and payer.trusted():
                    continue  # somebody else asks the same: theirs is worth waiting for
                raise unpaid(error) from error
        if not payer.has_heard:
            at = 0
            for piece in _recorded(payment.results[0]):
                pieces.hear(piece, at)
                at += len(piece)
        pieces.end()
        return payment


class _Pieces:
    """Passes pieces of an answer on, but holds back what may turn out to be the words for no answer."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._held: str | None = ""

    def hear(self, piece: str, at: int) -> None:
        if at == 0:
            self._held = ""
        if self._held is None:
            self._heard(AnswerPiece(piece, at))
            return
        self._held += piece
        if not (NO_ANSWER.startswith(self._held.strip()) or _is_refusal(self._held)):
            self._pass_on()

    def end(self) -> None:
        """The answer is complete."""
        if self._held and not _is_refusal(self._held):
            self._pass_on()

    def _pass_on(self) -> None:
        held, self._held = self._held or "", None
        self._heard(AnswerPiece(held, 0))


def _is_refusal(text: str) -> bool:
    """True for an answer that says that there is none, and little more."""
    return text.strip().startswith(NO_ANSWER) and len(text.strip()) <= SHORT_REFUSAL


def _nth(first: Call, number: int) -> Call:
    return first if number == 0 else replace(first, params={**first.params, "again": number})


def _streamed(model: Model, params: object) -> dict[str, object]:
    """The parameters of a call whose answer is streamed, unless the model's own parameters say otherwise."""
    own = dict(params) if isinstance(params, dict) else {}
    if model.stand_in or own.get("stream") is False:
        return {name: value for name, value in own.items() if name != "stream"}
    options = own.get("stream_options", {"include_usage": True})
    own = {name: value for name, value in own.items() if name != "stream_options"} | {"stream": True}
    return own | {"stream_options": options} if options else own


def _in_context(hits: list[Hit]) -> list[Hit]:
    """The best hits that fit into a prompt, in the order of their documents and not of their rank."""
    chosen: list[Hit] = []
    size = 0
    for hit in hits:
        size += len(hit.text)
        if chosen and size > answer_prompt.MOST_CONTEXT:
            break
        chosen.append(hit)
    return sorted(chosen, key=lambda hit: (hit.title, hit.document_id, hit.slice, hit.position))


def unpaid(error: MustWaitError) -> HoldfastError:
    """What a caller is told who cannot wait until it can be paid for."""
    match error.reason:
        case "budget":
            return HoldfastError(error.message, code="over_budget")
        case "parked":
            message = (
                "an earlier answer to this question broke off, and may have been charged; ask with `fresh` "
                "to pay for a new one, or resolve its order with: holdfast orders"
            )
            return HoldfastError(message, code="answer_in_doubt")
        case _:
            return HoldfastError(f"{error.message}; {RETRY}", code="answer_unavailable")


def _recorded(result: bytes) -> list[str]:
    reply = model_calls.answer(result)
    return event_stream.cut(reply.text, list(reply.pieces) or None)


def _checked(payment: Payment, sources: tuple[AnswerSource, ...], *, stand_in: bool) -> CitedAnswer:
    """The answer that the model gave, checked; WorkError where it gave none."""
    result = payment.results[0]
    text = model_calls.text(result)
    cost = AnswerCost.of(payment.spent)
    replayed = payment.spent.paid_calls == 0
    if _is_refusal(text):
        return CitedAnswer("", (), sources, True, "not_in_sources", cost, replayed, stand_in)
    checked = citations.check(text, [PromptSource(each.title, each.text).whole for each in sources])
    reason = None
    if not any(sentence.cites for sentence in checked.sentences):
        reason = "uncited"
    if checked.repeated > max(FEW_REPEATED, len(checked.sentences)):
        reason = "repetitive"
    if model_calls.answer(result).finish_reason == "length" or len(text) > citations.MOST_ANSWER:
        reason = "cut_off"
    return CitedAnswer(
        checked.text,
        checked.sentences,
        sources,
        False,
        reason,
        cost,
        replayed,
        stand_in,
        checked.unknown_citations,
    )
