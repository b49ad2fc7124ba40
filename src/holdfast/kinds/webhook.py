"""`webhook`: an event is delivered to a URL: signed, at least once, tried for a day.

A try is counted, then made; what came of it is written down under the fence. A delivery that did not land is
put back with a due time, which is no failure and holds nobody up. It ends as delivered with an answer of 2xx,
as failed when the receiver says 410 (gone), when its URL is forbidden, or when the time is over.
"""

import hashlib
import hmac
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.core import retry
from holdfast.core.errors import FencedOutError, MustWaitError, WorkError
from holdfast.core.ports import Host
from holdfast.core.records import Fenced, Outcome
from holdfast.core.text import plain
from holdfast.documents import http_post
from holdfast.engine.kinds import Finish, Kind
from holdfast.engine.work import Work
from holdfast.kinds import actions, webhook_signature
from holdfast.store.base.database import Database
from holdfast.store.follow_ups import deliveries, delivery_attempts
from holdfast.store.follow_ups.deliveries import Parcel

AGENT = "holdfast"
GONE = 410
# With a time-out of its own for each try, no task of this kind takes long.
SOFT_LIMIT, HARD_LIMIT = 600.0, 900.0


@dataclass(frozen=True, slots=True)
class DeliveryRules:
    """How a delivery is tried: seconds for one try, for how long in all, and how long between."""

    seconds: float = 15.0
    give_up_after: float = 86_400.0
    backoff: retry.Backoff = field(default_factory=lambda: retry.Backoff(first=5.0, factor=2.0, most=3600.0))
    allow_private: bool = False


def signature(secret: str, body: bytes, at: int) -> str:
    """The value of `Holdfast-Signature`: the time, and the HMAC-SHA256 of the time, a dot and the body."""
    signed = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={signed}"


class Webhook:
    """The work of delivering, in one process."""

    def __init__(
        self,
        db: Database,
        host: Host,
        rules: DeliveryRules | None = None,
        *,
        key: str | None = None,
        wall: Callable[[], float] = time.time,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._db = db
        self._host = host
        self._rules = rules or DeliveryRules()
        self._key = key
        self._wall = wall
        self._tls = tls

    def kind(self) -> Kind:
        """The kind to register."""
        return Kind(
            deliveries.KIND,
            self.run,
            version=deliveries.VERSION,
            soft_limit=SOFT_LIMIT,
            hard_limit=HARD_LIMIT,
            actions=(actions.WEBHOOK,),
        )

    def run(self, work: Work) -> Finish:
        """One try: delivered, put back for the next, or given up."""
        event_id = work.subject.removeprefix("delivery:")
        parcel = deliveries.parcel(self._db, work.claim.tenant, event_id)
        if parcel is None:
            raise WorkError("the event of this delivery is no longer stored", code="delivery_gone")
        tried = parcel.tries + 1
        _land(delivery_attempts.trying(self._db, work.claim, event_id, tried))
        work.check()
        try:
            posted = self._post(parcel, event_id)
        except (http_post.PostError, webhook_signature.KeyMissingError) as error:
            work.note(f"try {tried}: {error}")
            raise self._missed(work, event_id, parcel, None, str(error), None) from error
        except WorkError as error:
            _land(
                delivery_attempts.missed(
                    self._db, work.claim, event_id, status=None, error=plain(error.message)
                )
            )
            raise
        work.note(f"attempt {tried}: status {posted.status}")
        if 200 <= posted.status < 300:
            return Finish(
                {"status": posted.status, "tries": tried},
                also=lambda tx: delivery_attempts.delivered(tx, event_id, posted.status),
            )
        failure = f"the URL returned status {posted.status}"
        raise self._missed(work, event_id, parcel, posted.status, failure, posted.retry_after)

    def _post(self, parcel: Parcel, event_id: str) -> http_post.Posted:
        headers = [
            ("User-Agent", AGENT),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(parcel.body))),
            ("Idempotency-Key", event_id),
            ("Holdfast-Event-Id", event_id),
            ("Holdfast-Event", parcel.event),
        ]
        if parcel.secret:
            secret = webhook_signature.secret(self._key, parcel.secret)
            headers.append(("Holdfast-Signature", signature(secret, parcel.body, int(self._wall()))))
        rules = self._rules
        return http_post.post(
            parcel.url,
            parcel.body,
            headers,
            seconds=rules.seconds,
            allow_private=rules.allow_private,
            tls=self._tls,
        )

    def _missed(
        self, work: Work, event_id: str, parcel: Parcel, status: int | None, failure: str, later: float | None
    ) -> WorkError | MustWaitError:
        """What to raise for a try that did not land; it is written down."""
        _land(delivery_attempts.missed(self._db, work.claim, event_id, status=status, error=plain(failure)))
        if status == GONE:
            return WorkError(f"{failure}: the receiver no longer wants these events", code="webhook_gone")
        delay = retry.provider_delay(self._rules.backoff, parcel.tries, self._host.jitter(), later)
        if parcel.age + delay > self._rules.give_up_after:
            message = f"{failure}; gave up after {parcel.tries + 1} attempts"
            return WorkError(message, code="webhook_failed")
        return MustWaitError(failure, reason="delivery", delay=delay)


def _land(outcome: Outcome) -> None:
    if isinstance(outcome, Fenced):
        raise FencedOutError(f"the write was refused: {outcome.reason}")
