"""`Gateway.open`: the answer to a request, from the ledger or as a flight that is paid for.

Embeddings are reused within the tenant, answers of models within a scope alone: repeating a prompt may be
meant. A request outside a scope is a call of its own, and adopts the answer of an identical one that nobody
has got (`store.money.gateway_calls`).
"""

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.bootstrap import Runtime
from holdfast.bootstrap.upstreams import Upstream, Upstreams, upstreams_of
from holdfast.core import keys
from holdfast.core.errors import BadRequestError, HoldfastError
from holdfast.core.records import LedgerEntry
from holdfast.engine.engine import Engine
from holdfast.gateway import embeddings, responses
from holdfast.gateway.counting import GatewayCounts
from holdfast.gateway.failures import answer_to, is_void
from holdfast.gateway.flights import Flight, Flights, GatewayBusyError
from holdfast.gateway.refusals import RefusedError
from holdfast.gateway.requests import ENDPOINTS, GatewayRequest
from holdfast.gateway.responses import Charged
from holdfast.ledger.pay import Call
from holdfast.ledger.query_payer import QueryPayer
from holdfast.llm_requests import payments, recorded_responses, wire_keys
from holdfast.llm_requests.http_messages import HttpAnswer, HttpRequest
from holdfast.llm_requests.wire_keys import Reuse, SdkRequest
from holdfast.llm_requests.wire_provider import WireProvider
from holdfast.providers import wire
from holdfast.providers.base import Profile
from holdfast.store.money import gateway_calls, gateway_usage
from holdfast.store.money.gateway_calls import HeldCall

log = logging.getLogger(__name__)

# A stream that says nothing for so long has broken off.
MOST_IDLE = 120.0
FLUSH_EVERY = 1.0
RENEW_EVERY = 5.0
PRUNE_EVERY = 600.0


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """Calls under way at most; seconds for one call, and for waiting until somebody else has paid for it."""

    concurrency: int = 200
    deadline: float = 600.0
    wait: float = 120.0


@dataclass(frozen=True, slots=True)
class GatewayCaller:
    """Who asks. `key_id` is empty on this machine as long as there are no keys."""

    tenant: str
    key_id: str


@dataclass(frozen=True, slots=True)
class OpenedRequest:
    """An answer that is there, or a flight that is under way; `joined` if somebody else began it."""

    provider: str
    model: str
    answer: HttpAnswer | None = None
    charged: Charged = field(default_factory=Charged)
    flight: Flight | None = None
    joined: bool = False


@dataclass(frozen=True, slots=True)
class _Job:
    """What a flight carries out."""

    caller: GatewayCaller
    request: GatewayRequest
    upstream: Upstream
    sdk: SdkRequest
    http: HttpRequest
    calls: tuple[Call, ...]
    adopted: bool = False


class Gateway:
    """The gateway of one process. Its methods may wait for the database, and are called from any thread."""

    def __init__(self, engine: Engine, upstreams: Upstreams, options: GatewayOptions | None = None) -> None:
        self._engine = engine
        self._upstreams = upstreams
        self._options = options or GatewayOptions()
        self._wire = wire.Wire(max_connections=self._options.concurrency)
        self._process = engine.host.process()
        self.flights = Flights(self._options.concurrency, self._release)
        self.counting = GatewayCounts(engine.host.token(), engine.host.token)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._upkeep: threading.Thread | None = None

    def open(self, caller: GatewayCaller, request: GatewayRequest, body: bytes) -> OpenedRequest:
        """The answer, or the flight that brings it; RefusedError for a request that is not carried out."""
        self._start_upkeep()
        upstream = self._upstream(request)
        try:
            job = self._read(caller, request, upstream, body)
            if (known := self._known(job)) is not None:
                return known
            if job.calls:
                return self._start(job, Flight(caller.tenant, self._key(job)))
            return self._single(job)
        except GatewayBusyError:
            message = "as many calls are under way as this gateway may have; try again"
            refused = request.refusal(
                503, code="gateway_busy", message=message, retry_after=1, may_retry=True
            )
            raise RefusedError(refused) from None
        except HoldfastError as error:
            raise RefusedError(answer_to(error, None, request, upstream)) from error

    def _upstream(self, request: GatewayRequest) -> Upstream:
        fitting = {
            name: each
            for name, each in self._upstreams.by_name.items()
            if each.wire == ENDPOINTS[request.endpoint]
        }
        usual = self._upstreams.usual.get(request.endpoint)
        server = usual if request.provider is None else fitting.get(request.provider)
        if server is not None:
            return server
        if not fitting:
            wire_name = ENDPOINTS[request.endpoint]
            message = (
                f"no provider is set up for {request.endpoint}; add a [providers.NAME], wire = {wire_name}"
            )
        else:
            message = f"say which provider: /gateway/provider/NAME/v1, with NAME one of {', '.join(fitting)}"
        raise RefusedError(request.refusal(404, code="gateway_provider", message=message))

    def _read(self, caller: GatewayCaller, request: GatewayRequest, upstream: Upstream, body: bytes) -> _Job:
        """The calls of the request; none if it is one outside a scope, whose name is not known yet."""
        headers = [(name, value) for name, value in request.headers if name != "content-type"]
        sent = [*headers, ("content-type", "application/json"), *upstream.credentials]
        http = HttpRequest(upstream.url(request.endpoint), sent, body)
        sdk = wire_keys.read(http, upstream.identity)
        if not sdk.fields:
            raise BadRequestError("the body of the request is no JSON object", code="not_json")
        if sdk.fields.get("background"):
            message = (
                "a response in the background is fetched later, which the gateway cannot do; leave it out"
            )
            raise RefusedError(request.refusal(400, code="bad_request", message=message))
        job = _Job(caller, request, upstream, sdk, http, ())
        if request.endpoint == "embeddings":
            embeddings.checked(sdk.fields)
            split = embeddings.calls(upstream.identity, sdk.fields, request.again)
            if split is not None:
                return replace(job, calls=tuple(split))
        again = {"again": request.again} if request.again else {}
        if sdk.reuse is Reuse.TENANT:
            return replace(job, calls=(_call(sdk, again),))
        if request.scope is None:
            return job
        return replace(job, calls=(_call(sdk, {"scope": request.scope, **again}),))

    def _is_split(self, job: _Job) -> bool:
        """True for embeddings that are put together text by text."""
        return job.request.endpoint == "embeddings" and "path" not in job.calls[0].params

    def _key(self, job: _Job) -> str:
        """What flights are joined by; none for embeddings, of which the ledger joins each text."""
        return "" if self._is_split(job) else job.calls[0].key(job.caller.tenant)

    def _known(self, job: _Job) -> OpenedRequest | None:
        """The answer from the ledger, or the flight that somebody has begun; None if there is neither."""
        if not job.calls:
            return None
        tenant = job.caller.tenant
        if (key := self._key(job)) and (flight := self.flights.join(tenant, key)) is not None:
            return OpenedRequest(job.upstream.identity, job.sdk.model, flight=flight, joined=True)
        entries = self._engine.ledger.settled(tenant, job.calls)
        if entries is None:
            return None
        distinct = {entry.key: entry for entry in entries}.values()
        cost = sum(entry.cost for entry in distinct)
        charged = Charged("reused", cost, _order(entries), len(distinct), cost)
        answer = self._answer(job, entries, charged)
        return OpenedRequest(job.upstream.identity, job.sdk.model, answer, charged)

    def _answer(self, job: _Job, entries: tuple[LedgerEntry, ...], charged: Charged) -> HttpAnswer:
        """The answer that the ledger has."""
        if self._is_split(job):
            body = embeddings.body(job.sdk.fields, entries)
            return HttpAnswer(200, {"content-type": "application/json", **charged.headers}, body)
        record = recorded_responses.replayed(entries[0].result or b"", charged.charge)
        return replace(record, headers={**record.headers, **charged.headers})

    def _start(self, job: _Job, flight: Flight) -> OpenedRequest:
        started = self.flights.start(flight, lambda it: self._fly(it, job))
        return OpenedRequest(
            job.upstream.identity, job.sdk.model, flight=started, joined=started is not flight
        )

    def _single(self, job: _Job) -> OpenedRequest:
        """A request outside a scope: it adopts what nobody has got, or is a call of its own."""
        tenant, sdk, host = job.caller.tenant, job.sdk, self._engine.host
        content = keys.digest(sdk.provider, keys.spelled(sdk.params), sdk.model, sdk.text)
        if (left := self.flights.adopt(tenant, content)) is not None:
            return OpenedRequest(job.upstream.identity, sdk.model, flight=left, joined=True)
        db, hold = self._engine.db, host.token()
        held = gateway_calls.adopt(db, tenant, content, hold, self._process, host.has_died)
        adopted = held is not None
        if held is None:
            held = HeldCall(host.token(), hold)
            gateway_calls.begin(db, tenant, content, held, self._process)
        named = replace(job, calls=(_call(sdk, {"call": held.call}),), adopted=adopted)
        try:
            return self._start(named, Flight(tenant, self._key(named), content, held))
        except GatewayBusyError:
            self._release(held)
            raise

    def _release(self, held: HeldCall) -> None:
        try:
            gateway_calls.release(self._engine.db, held)
        except HoldfastError as error:
            # It becomes an orphan by itself when nobody renews it.
            log.warning("a call whose client has left was not released: %s", error.message)

    def _fly(self, flight: Flight, job: _Job) -> HttpAnswer:
        """What a flight ends with; never raises."""
        provider = self._provider(flight, job)
        try:
            return self._paid(flight, job, provider)
        except HoldfastError as error:
            flight.is_void = not job.adopted and is_void(error)
            return answer_to(error, provider, job.request, job.upstream)
        except Exception:  # outermost: readers wait for an answer, whatever happens
            log.exception("a call of the gateway failed")
            message = "an internal error occurred; see the log of the gateway"
            return job.request.refusal(500, code="internal", message=message)

    def _paid(self, flight: Flight, job: _Job, provider: WireProvider) -> HttpAnswer:
        engine, caller = self._engine, job.caller
        charge = "waited"
        if job.adopted and engine.ledger.settled(caller.tenant, job.calls) is not None:
            charge = "reused"
        scope = job.request.scope or ""
        holder = QueryPayer(
            engine.host,
            caller.tenant,
            None,
            provider.profile.deadline,
            key_id=caller.key_id,
            reuse_scope=scope,
        )
        wait = self._options.wait
        payment = payments.pay(engine.ledger.serving(provider), holder, job.calls, patience=wait)
        if provider.has_answered:
            charge = "paid"
        spent = payment.spent
        cost = spent.paid if charge == "paid" else spent.saved
        charged = Charged(charge, cost, _order(payment.entries), spent.reused_calls, spent.saved)
        flight.charged = charged
        if not self._is_split(job) and provider.has_answered and provider.reply is not None:
            if provider.held_back:
                flight.hear(provider.held_back)
            answer = responses.passed_on(provider.reply, job.upstream.key)
            return replace(answer, headers={**answer.headers, **charged.headers})
        return self._answer(job, payment.entries, charged)

    def _provider(self, flight: Flight, job: _Job) -> WireProvider:
        streams = job.sdk.streams and not self._is_split(job)
        deadline = job.upstream.deadline or self._options.deadline
        upstream, split = job.upstream, self._is_split(job)
        profile = Profile(
            name=upstream.identity,
            honours_keys=upstream.key_retention > 0,
            key_retention=upstream.key_retention,
            max_inputs=upstream.max_inputs if split else 1,
            max_tokens=upstream.max_tokens if split else 1_000_000_000,
            deadline=deadline,
        )
        idle = min(MOST_IDLE, deadline) if streams else deadline
        if split:
            user = job.sdk.fields.get("user")
            return embeddings.TextEmbeddings(profile, self._wire, job.http, idle=idle, user=user)
        if not streams:
            return WireProvider(profile, self._wire, job.http, idle=idle)

        def begin(status: int, headers: Mapping[str, str]) -> None:
            charged = Charged("paid", order_id=provider.order_id)
            flight.begin(status, {**responses.useful(headers), **charged.headers})

        provider = WireProvider(profile, self._wire, job.http, idle=idle, begin=begin, hear=flight.hear)
        return provider

    def _start_upkeep(self) -> None:
        if self._upkeep is None:
            with self._lock:
                if self._upkeep is None:
                    self._upkeep = threading.Thread(
                        target=self._keep_up, name="holdfast-gateway-upkeep", daemon=True
                    )
                    self._upkeep.start()

    def _keep_up(self) -> None:
        """Counts are written and held calls renewed, until the gateway is closed."""
        since: dict[str, float] = {"renew": 0.0, "prune": 0.0}
        while not self._stop.wait(FLUSH_EVERY):
            try:
                self.keep_up(since)
            except HoldfastError as error:
                log.warning("the counts of the gateway are written later: %s", error.message)
            except Exception:  # outermost loop: a bad round must not end it
                log.exception("the upkeep of the gateway failed; it goes on")

    def keep_up(self, since: dict[str, float]) -> None:
        """One round. `since` is when calls were renewed and old rows deleted last."""
        db, clock = self._engine.db, self._engine.host.clock()
        self.counting.flush(db)
        held: list[str] = []
        if clock - since["renew"] >= RENEW_EVERY:
            since["renew"], held = clock, self.flights.held()
        self._forget_delivered(held)
        if clock - since["prune"] >= PRUNE_EVERY:
            since["prune"] = clock
            gateway_calls.prune(db)
            gateway_usage.prune(db)

    def _forget_delivered(self, held: list[str]) -> None:
        delivered = self.flights.take_delivered()
        try:
            gateway_calls.keep(self._engine.db, held=held, delivered=delivered)
        except HoldfastError:
            self.flights.put_back(delivered)
            raise

    def close(self, patience: float) -> bool:
        """Calls under way are waited for, and counts written; False if some are left after so many seconds.

        A call that is left is in doubt once the process has ended.
        """
        ended = self.flights.wait(patience)
        self._stop.set()
        if self._upkeep is not None:
            self._upkeep.join(5.0)
        try:
            self.counting.flush(self._engine.db, whole=True)
            self._forget_delivered([])
        except HoldfastError as error:
            log.warning("the last counts of the gateway were not written: %s", error.message)
        self._wire.close()
        return ended


def _call(sdk: SdkRequest, more: Mapping[str, Any]) -> Call:
    return Call(sdk.provider, sdk.endpoint, sdk.model, sdk.text, {**sdk.params, **more})


def _order(entries: tuple[LedgerEntry, ...]) -> str:
    """The order that paid for all of them; empty if several did."""
    orders = {entry.order_id or "" for entry in entries}
    return orders.pop() if len(orders) == 1 else ""


def gateway_of(runtime: Runtime) -> Gateway:
    """The gateway with the providers and limits of the settings."""
    settings = runtime.settings
    options = GatewayOptions(settings.gateway_concurrency, settings.gateway_deadline, settings.gateway_wait)
    return Gateway(runtime.engine, upstreams_of(settings), options)
