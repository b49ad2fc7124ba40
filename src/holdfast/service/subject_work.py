"""Work of any kind on a subject: find, explain, cancel, request again.

Nothing here needs to know the kind of work, so it also serves a process that has loaded no kinds.
"""

from dataclasses import dataclass, replace

from holdfast.core import subjects
from holdfast.core.errors import BadRequestError, ConflictError, NotFoundError
from holdfast.core.records import Ask, Fenced, Head, Outcome, RequestResult
from holdfast.core.states import GUARDED_LANE, Disposition, Lane, Status
from holdfast.engine.engine import Engine
from holdfast.service import explanations
from holdfast.service.explanations import Advice
from holdfast.service.requests import RequestContext
from holdfast.store.follow_ups import follow_up_retries
from holdfast.store.guarded import messages
from holdfast.store.library import documents
from holdfast.store.library.documents import Document
from holdfast.store.money import billing, provider_troubles
from holdfast.store.money.billing import OpenOrder
from holdfast.store.protocol import requests
from holdfast.store.views import live_runs, reads
from holdfast.store.views.reads import Story


@dataclass(frozen=True, slots=True)
class SubjectStory:
    """A story, the orders of its runs that are not settled, and the document that it is about, if any."""

    story: Story
    orders: tuple[OpenOrder, ...]
    document: Document | None
    advice: Advice


class SubjectWork:
    """The work of an installation, by tenant, subject and kind."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._db = engine.db

    def one(self, tenant: str, subject: str, kind: str | None) -> Head:
        """The head; NotFoundError when there is none, BadRequestError when there is one of several kinds."""
        heads = self.all(tenant, subject, kind)
        if len(heads) > 1:
            kinds = ", ".join(head.kind for head in heads)
            message = f"{subject} has work of several kinds; add --kind with one of: {kinds}"
            raise BadRequestError(message, code="several_kinds")
        return heads[0]

    def all(self, tenant: str, subject: str, kind: str | None) -> tuple[Head, ...]:
        """The heads of a subject, at least one; otherwise NotFoundError."""
        # What an action does with a document has a subject of its own: document:42#action:3.
        whole, mark, action = subject.partition(follow_up_retries.MARK)
        whole = subject if mark and not action.isdecimal() else whole
        Ask(kind=kind or "index", subject=whole, tenant=tenant).checked()
        heads = live_runs.heads_of(self._db, tenant, subject, kind)
        if not heads:
            what = f"{subject} (kind {kind})" if kind else subject
            message = (
                f"no work was ever requested for {what} of tenant {tenant}; see: holdfast documents list"
            )
            raise NotFoundError(message, code="unknown_subject")
        return heads

    def stories(self, tenant: str, subject: str, kind: str | None) -> list[SubjectStory]:
        """What became of every kind of work on the subject, or of one."""
        unsettled = billing.open_orders(self._db, None)
        now, troubles = reads.moment(self._db), provider_troubles.all_of(self._db)
        stories = []
        for head in self.all(tenant, subject, kind):
            story = reads.story(self._db, head.id)
            if story is None:
                continue
            orders = tuple(order for order in unsettled if order.run_id in story.tasks)
            document = self._document(head)
            advice = explanations.advise(story, orders, now=now, troubles=troubles, document=document)
            stories.append(SubjectStory(story, orders, document, advice))
        return stories

    def _document(self, head: Head) -> Document | None:
        """The document that is indexed; None for other work."""
        if head.kind != subjects.INDEX:
            return None
        return documents.document(self._db, head.tenant, subjects.document_id(head.subject))

    def cancel(self, head: Head, *, actor: str) -> Outcome:
        """The live run has ended; fenced out when there was none."""
        return self._engine.cancel(head.id, actor=actor)

    def retry(self, wish: RequestContext, head: Head, *, force: bool) -> RequestResult | None:
        """What became of the last request, made again with the same content, options and pipeline.

        None for what was imported, and so has no pipeline: asked again as it is, no worker could ever claim
        it. ConflictError for what an action did and that cannot be done again.
        """
        if follow_up_retries.MARK in head.subject:
            return self._retry_follow_up(wish, head)
        last = requests.last_ask(self._db, head.tenant, head.kind, head.subject)
        if last is None or not last.pipeline:
            return None
        most = last.max_cost if wish.max_cost is None else wish.max_cost
        ask = replace(last, force=force, actor=wish.actor, max_cost=most)
        if ask.lane == GUARDED_LANE:
            return self._retry_guarded(ask, head)
        answer = requests.request(
            self._db,
            ask,
            run_id=self._engine.host.token(),
            patience=self._engine.parts.patience,
        )
        self._engine.wake({last.lane: int(answer.created)})
        return answer

    def _retry_guarded(self, ask: Ask, head: Head) -> RequestResult:
        """A call of a guarded task is made again with its message; without one it would never start."""
        host, patience = self._engine.host, self._engine.parts.patience
        answer = messages.request_again(
            self._db, ask, head.run_id or "", celery_id=host.token(), patience=patience
        )
        if answer is None:
            message = f"the call of {head.subject} is not stored any more; call the task in its application"
            raise ConflictError(message, code="nothing_to_retry")
        return answer

    def _retry_follow_up(self, wish: RequestContext, head: Head) -> RequestResult:
        run_id = self._engine.host.token()
        outcome = follow_up_retries.retry(
            self._db, head.tenant, head.subject, run_id=run_id, actor=wish.actor, max_cost=wish.max_cost
        )
        if isinstance(outcome, Fenced):
            message = f"{head.subject} cannot be retried ({outcome.reason.replace('_', ' ')})"
            raise ConflictError(message, code="nothing_to_retry")
        self._engine.wake({Lane.FOLLOW_UP: 1})
        accepted = Disposition.ACCEPTED, "retry", head.id, run_id, head.generation + 1, Status.QUEUED
        return RequestResult(*accepted)
