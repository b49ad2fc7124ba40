"""`Ledger.pay`: each distinct paid input is paid once; the rest is looked up, waited for or resent.

The loop of `pay` always starts from the current state of the ledger, and does the safest useful thing next:

1. free keys → intend, send and settle my own orders;
2. orders in doubt → resend them byte for byte (or park them), never regrouped;
3. keys held by others → recover what a dead holder left behind, else wait, bounded.

It never waits while holding an unsent intent, so two workers that need each other's keys cannot block each
other. A crash anywhere leaves rows from which the next holder continues: an intent (void), a sent order (in
doubt), or a settled call (kept).

Not covered: an order in flight when its worker dies. It is recorded in doubt and, if the provider honours
idempotency keys, resent for free; otherwise the resend may be charged again and the bill shows both (G5).
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row

from holdfast.core import keys
from holdfast.core.errors import FencedOutError, MustWaitError, WorkError
from holdfast.core.ports import Host
from holdfast.core.records import Claim, Fenced, LedgerEntry, Order, Spent
from holdfast.core.states import CallState
from holdfast.ledger import prices
from holdfast.ledger.carrier import Carrier
from holdfast.ledger.exchanges import Exchanges, Holder, Policy, throttle_scope
from holdfast.ledger.handover import HandOver
from holdfast.ledger.relay_talk import Relays
from holdfast.ledger.verification import Verifying, verified
from holdfast.providers.base import Provider
from holdfast.store.base.database import Database
from holdfast.store.money import budgets, calls, carried, orders

# Endpoints whose answers are written by a model.
GENERATING = ("chat", "completions", "messages", "responses")
USUAL_OUTPUT = 1000
MOST_OUTPUT = 1_000_000


@dataclass(frozen=True, slots=True)
class Call:
    """One paid input.

    `units` is how many are expected to be billed besides its tokens: searches, pages; None if that is not
    known. They decide about the price alone and are not part of the key. For a document `text` is the digest
    of its file.
    """

    provider: str
    endpoint: str
    model: str
    text: str
    params: Mapping[str, object] = field(default_factory=dict)
    units: int | None = field(default=0, compare=False)
    _keys: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def key(self, tenant: str) -> str:
        """Its content key for `tenant`; computed once."""
        if (known := self._keys.get(tenant)) is not None:
            return known
        self._keys[tenant] = content_key = keys.call_key(
            tenant=tenant,
            provider=self.provider,
            endpoint=self.endpoint,
            model=self.model,
            params=self.params,
            text=self.text,
        )
        return content_key


def expected_tokens(table: prices.PriceTable, provider: Provider, call: Call) -> tuple[int, int]:
    """The tokens to reserve for a call, of its input and of its output; for a document by its pages."""
    if each := provider.profile.unit_tokens:
        price = table.price(call.model, call.provider)
        tokens = 0 if price is None or price.unit else each * (call.units or 0)
        return tokens, tokens
    output = _most_output(call.params) if call.endpoint.startswith(GENERATING) else 0
    return provider.count_tokens(call.text), output


def expected_cost(table: prices.PriceTable, provider: Provider, call: Call) -> int | None:
    """What a call costs at most, in nano-dollars; None if no price is known."""
    tokens = expected_tokens(table, provider, call)
    return table.cost(call.model, *tokens, provider=call.provider, units=call.units)


@dataclass(frozen=True, slots=True)
class Payment:
    """The results, one per call in the order of the calls, and what they cost this task."""

    results: tuple[bytes, ...]
    spent: Spent
    # What the ledger knows of each call: its order, its tokens and its cost.
    entries: tuple[LedgerEntry, ...] = ()


class Ledger:
    """The only way to a provider."""

    def __init__(
        self,
        db: Database,
        host: Host,
        providers: Mapping[str, Provider],
        table: prices.PriceTable = prices.DEFAULT,
        policy: Policy | None = None,
        carrier: Carrier | None = None,
        relays: Relays | None = None,
    ) -> None:
        """`relays`, if given, carry the orders of this process; the policy says whether they must."""
        self._db = db
        self._host = host
        self._providers = providers
        self._table = table
        self._policy = policy or Policy()
        self.carrier = carrier or Carrier(db, host)
        self._exchanges = Exchanges(db, host, table, self._policy, self.carrier)
        self._rules = orders.OrderRules(
            died=host.has_died, cheap=self._policy.cheap, ttl=self.carrier.ttl, waits=self._policy.waits
        )
        self._hand_over = (
            None
            if relays is None
            else HandOver(db, relays, self._rules, required=self._policy.relay_required)
        )

    def serving(self, provider: Provider) -> "Ledger":
        """The same ledger for one provider, which need not be set up here; no relay knows it."""
        return Ledger(
            self._db, self._host, {provider.name: provider}, self._table, self._policy, self.carrier
        )

    def pay(self, holder: Holder, batch: Sequence[Call], counted: set[str] | None = None) -> Payment:
        """The results of all calls, each paid once for the tenant.

        `counted` are the keys that the holder has counted already; those of this payment are added.

        Raises MustWaitError if the task should be put back (budget, rate, another's intent, parked),
        ProviderRefusedError if the provider rejects an input for good, WorkStopped if the lease is lost.
        """
        tenant = holder.claim.tenant
        by_key = {call.key(tenant): call for call in batch}
        give_up = self._host.clock() + self._policy.wait
        tries = 0
        mine: dict[str, LedgerEntry] = {}  # settled here: need no lookup
        known: dict[str, LedgerEntry] = {}  # settled, by anyone: their results are read once
        polls = 0
        while True:
            open_keys = [key for key in by_key if key not in known]
            entries = calls.look_up(self._db, tenant, open_keys) if open_keys else {}
            known |= {key: entry for key, entry in entries.items() if entry.state is CallState.SETTLED}
            open_keys = [key for key in open_keys if key not in known]
            if not open_keys:
                own = {entry.order_id for entry in mine.values()}
                return self._payment(holder.claim, batch, known, set() if counted is None else counted, own)
            holder.check()
            if (settled := self._work_on(holder, by_key, entries, open_keys, tries)) is not None:
                mine |= {key: entry for key, entry in settled.items() if key in by_key}
                known |= mine
                tries, polls = tries + 1, 0
                continue
            if self._host.clock() > give_up:
                message = "another worker is paying for the same input and has not finished"
                raise MustWaitError(message, reason="intent", delay=self._policy.backoff.first * 4)
            holder.waiting(True)
            self._host.sleep(self._policy.between_looks(polls) * (0.5 + self._host.jitter()))
            polls += 1

    def _work_on(
        self,
        holder: Holder,
        by_key: Mapping[str, Call],
        entries: Mapping[str, LedgerEntry],
        open_keys: Sequence[str],
        tries: int,
    ) -> dict[str, LedgerEntry] | None:
        """Do the next useful thing for the open keys; None if the only thing left is to wait.

        Returns the calls settled by it, as far as this process knows without a lookup.
        """
        free = [key for key in open_keys if key not in entries or entries[key].state is CallState.VOID]
        if free:
            holder.waiting(False)
            batches = self._batches({key: by_key[key] for key in free})
            jobs = [_Job(self, holder, batch, tries).run for batch in batches]
            return _together(self._host.gather(jobs, self._policy.concurrency))
        states = {entries[key].order_id or "": entries[key].state for key in open_keys}
        doubtful = sorted(order for order, state in states.items() if state is CallState.IN_DOUBT)
        if doubtful:
            holder.waiting(False)
            again = [_Again(self, holder, order_id, tries).run for order_id in doubtful]
            return _together(self._host.gather(again, self._policy.concurrency))
        changed = [
            orders.recover(self._db, order_id, self._rules) is not state
            for order_id, state in sorted(states.items())
            if state in {CallState.INTENT, CallState.SENT}
        ]
        if not changed:
            message = "an order in doubt is parked; resolve it with: holdfast orders"
            raise MustWaitError(message, reason="parked", delay=self._policy.parked_delay)
        return {} if any(changed) else None

    def _batches(self, free: Mapping[str, Call]) -> list[list[tuple[str, Call]]]:
        """The calls grouped into orders: same endpoint, model and parameters, within the limits."""
        batches: list[list[tuple[str, Call]]] = []
        filling: dict[tuple[str, str, str, str], tuple[list[tuple[str, Call]], int]] = {}
        for key, call in sorted(free.items()):
            provider = self.provider(call.provider)
            profile = provider.profile
            group = (call.provider, call.endpoint, call.model, keys.spelled(call.params))
            most = 1 if call.endpoint.startswith("chat") else profile.max_inputs
            size = provider.count_tokens(call.text)
            batch, used = filling.get(group, ([], 0))
            if not batch or len(batch) >= most or used + size > profile.max_tokens:
                batch, used = [], 0
                batches.append(batch)
            batch.append((key, call))
            filling[group] = (batch, used + size)
        return batches

    def provider(self, name: str) -> Provider:
        """The provider called `name`."""
        if name not in self._providers:
            raise WorkError(
                f"provider {name!r} is not set up here; set HOLDFAST_EMBEDDING_PROVIDER or "
                "HOLDFAST_LLM_PROVIDER",
                code="no_provider",
            )
        return self._providers[name]

    def submit(self, holder: Holder, batch: Sequence[tuple[str, Call]], tries: int) -> dict[str, LedgerEntry]:
        """The batch's free keys are intended, sent and settled (or voided, or put in doubt).

        Returns the calls that this exchange settled.
        """
        first = batch[0][1]
        provider = self.provider(first.provider)
        in_process = provider.profile.in_process
        if self._hand_over is not None and not in_process:
            self._hand_over.check()
        if tries or not in_process:
            self._respect_throttle(holder, first.provider, first.endpoint, first.model)
        draft = self._draft(holder.claim, provider, batch)
        holder.check()
        began = self._host.clock()
        try:
            marked = (calls.send_at_once if in_process else calls.intend)(self._db, holder.claim, draft)
        except budgets.OverBudgetError as error:
            raise MustWaitError(error.message, reason="budget", delay=self._policy.budget_delay) from error
        except ValueError as error:  # from `encode`; the intent was rolled back with its transaction
            raise WorkError(f"the call cannot be sent: {error}", code="bad_call") from error
        if isinstance(marked, Order) and marked.state is CallState.INTENT:
            if (relayed := self._relayed(holder, marked, tries)) is not None:
                return relayed
            began = self._host.clock()
            marked = self._send(holder, marked)
        if isinstance(marked, Order):
            return self._exchanges.carry_out(provider, holder, marked, began, tries)
        if marked is None or marked.reason == calls.INTENT_LOST:
            return {}  # others hold them; or another worker recovered it, and the task is still ours
        raise FencedOutError(f"fenced out before sending: {marked.reason}")

    def _draft(self, claim: Claim, provider: Provider, batch: Sequence[tuple[str, Call]]) -> calls.OrderDraft:
        first = batch[0][1]
        texts = {key: call.text for key, call in batch}
        return calls.OrderDraft(
            id=self._host.token(),
            provider=first.provider,
            endpoint=first.endpoint,
            model=first.model,
            weights={key: expected_cost(self._table, provider, call) or 0 for key, call in batch},
            encode=lambda mine: provider.encode(
                first.endpoint, first.model, _sent_params(provider, first), [texts[key] for key in mine]
            ),
            keyed=provider.profile.honours_keys,
            deadline=provider.profile.deadline,
            stale_after=self._policy.stale_intent,
            scopes=_scopes(claim),
            unpriced=expected_cost(self._table, provider, first) is None,
            max_run_cost=self._policy.max_run_cost,
            # Nobody waits for a response from this process itself.
            carrier=None if provider.profile.in_process else self.carrier.keep(),
        )

    def _relayed(self, holder: Holder, order: Order, tries: int) -> dict[str, LedgerEntry] | None:
        """A relay carries the order; None if this process is to send it. Returns the calls it settled."""
        if self._hand_over is None:
            return None
        relayed = self._hand_over.hand_over(holder, order, tries)
        if relayed is None:
            return None
        if relayed.failure is not None:
            self._exchanges.go_on(holder, order, relayed.failure, tries, throttled=True)
        if not relayed.is_settled:
            return {}
        entries = calls.look_up(self._db, order.tenant, order.call_keys)
        return {key: entry for key, entry in entries.items() if entry.state is CallState.SETTLED}

    def _send(self, holder: Holder, intended: Order) -> Order | Fenced:
        mark = calls.SendMark(self._host.token(), self.carrier.id)
        marked = calls.send(self._db, holder.claim, intended, mark)
        if isinstance(marked, Fenced):
            reason = f"fenced out before sending: {marked.reason}"
            orders.void(self._db, intended.id, intended.sends, reason=reason)
        return marked

    def place_again(self, holder: Holder, order_id: str, tries: int) -> dict[str, LedgerEntry]:
        """The in-doubt order is resent byte for byte, or parked by the rules."""
        row = self._db.read(lambda tx: tx.one(calls.ORDER_AND_APPROVAL, {"order_id": order_id}))
        if row is None or row.state != CallState.IN_DOUBT:
            return {}
        provider = self.provider(row.provider)
        if isinstance(provider, Verifying) and not row.approved:
            return verified(self._db, provider, order_id, self._exchanges.settle)
        if not row.approved and (why := self._park_reason(row, provider)) is not None:
            orders.park(self._db, order_id, reason=why)
            return {}
        if tries >= self._policy.most_sends:
            message = f"the provider did not answer {tries} times ({row.reason}); the order stays in doubt"
            raise WorkError(message, code="provider_unavailable")
        if tries:
            self._exchanges.pause(holder, self._policy.backoff.delay(tries, self._host.jitter()))
        self._respect_throttle(holder, row.provider, row.endpoint, row.model)
        holder.check()
        if (relayed := self._relayed_again(holder, provider, order_id, tries)) is not None:
            return relayed
        began = self._host.clock()
        try:
            marked = calls.resend(self._db, holder.claim, order_id, self._host.token(), self.carrier.keep())
        except budgets.OverBudgetError as error:
            raise MustWaitError(error.message, reason="budget", delay=self._policy.budget_delay) from error
        if isinstance(marked, Fenced):
            if marked.reason.startswith("order_"):
                return {}
            raise FencedOutError(f"fenced out before resending: {marked.reason}")
        return self._exchanges.carry_out(provider, holder, marked, began, tries)

    def _relayed_again(
        self, holder: Holder, provider: Provider, order_id: str, tries: int
    ) -> dict[str, LedgerEntry] | None:
        """A relay resends the order in doubt; None if this process is to resend it."""
        if self._hand_over is None or provider.profile.in_process:
            return None
        self._hand_over.check()
        refused = carried.adopt(self._db, holder.claim, order_id)
        if refused is not None:
            if refused.reason.startswith("order_"):
                return {}
            raise FencedOutError(f"fenced out before resending: {refused.reason}")
        offer = carried.offered(self._db, order_id)
        return {} if offer is None else self._relayed(holder, offer.order, tries)

    def _park_reason(self, row: Row[Any], provider: Provider) -> str | None:
        profile = provider.profile
        if self._policy.in_doubt == "park" and not row.keyed:
            return "orders in doubt are parked by a setting"
        limit = self._policy.park_above
        if limit is not None and (row.unpriced or row.estimate > limit) and not row.keyed:
            return "in doubt, and too expensive to resend without approval"
        if not row.keyed and row.status_code is not None and 200 <= row.status_code < 300:
            return f"its response is unusable ({row.reason}); a resend costs again"
        if not row.keyed and row.doubts >= self._policy.most_doubts:
            return f"in doubt {row.doubts} times at a provider that may charge each time"
        if (
            row.keyed
            and row.first_sent_at is not None
            and row.now - row.first_sent_at > profile.key_retention
        ):
            return "older than the provider keeps its idempotency key"
        return None

    def _respect_throttle(self, holder: Holder, provider: str, endpoint: str, model: str) -> None:
        wait = budgets.wait_for(self._db, throttle_scope(provider, endpoint, model))
        if wait > self._policy.short_wait:
            raise MustWaitError("the provider asked to slow down", reason="rate", delay=wait)
        self._exchanges.pause(holder, wait)

    def estimate(self, call: Call) -> int | None:
        """What the call costs at most, in nano-dollars; None if no price is known."""
        return expected_cost(self._table, self.provider(call.provider), call)

    def settled(self, tenant: str, batch: Sequence[Call]) -> tuple[LedgerEntry, ...] | None:
        """What the ledger knows of each call, if all of them were paid for; one statement, nothing sent."""
        entries = calls.look_up(self._db, tenant, list({call.key(tenant) for call in batch}))
        listed = [entries.get(call.key(tenant)) for call in batch]
        known = tuple(entry for entry in listed if entry is not None and entry.state is CallState.SETTLED)
        return known if len(known) == len(listed) else None

    def states(self, tenant: str, batch: Sequence[Call]) -> list[CallState | None]:
        """What the ledger knows of each call; None for one that nobody has asked for."""
        entries = calls.look_up(self._db, tenant, [call.key(tenant) for call in batch])
        known = [entries.get(call.key(tenant)) for call in batch]
        return [None if each is None else each.state for each in known]

    def _payment(
        self,
        claim: Claim,
        batch: Sequence[Call],
        entries: Mapping[str, LedgerEntry],
        counted: set[str],
        own: AbstractSet[str | None],
    ) -> Payment:
        listed = tuple(entries[call.key(claim.tenant)] for call in batch)
        paid_calls = reused_calls = tokens = paid = saved = unpriced = 0
        carriers = sorted({entry.order_id or "" for entry in entries.values()} - own)
        if carriers:
            own = own | calls.paid_by(self._db, claim.task_id, carriers)
        for call, entry in zip(batch, listed, strict=True):
            if entry.key in counted:
                continue
            counted.add(entry.key)
            if entry.order_id in own:
                paid_calls, tokens, paid = paid_calls + 1, tokens + entry.tokens, paid + entry.cost
                unpriced += not entry.cost and self._is_unpriced(call)
            else:
                reused_calls, saved = reused_calls + 1, saved + entry.cost
        spent = Spent(paid_calls, reused_calls, tokens, paid, saved, unpriced)
        return Payment(tuple(entry.result or b"" for entry in listed), spent, listed)

    def _is_unpriced(self, call: Call) -> bool:
        """True if a call that cost nothing was not free: its price is not known."""
        price = self._table.price(call.model, call.provider)
        return price is None or (call.units != 0 and price != prices.FREE)


@dataclass(frozen=True, slots=True)
class _Job:
    ledger: Ledger
    holder: Holder
    batch: Sequence[tuple[str, Call]]
    tries: int

    def run(self) -> dict[str, LedgerEntry]:
        return self.ledger.submit(self.holder, self.batch, self.tries)


@dataclass(frozen=True, slots=True)
class _Again:
    ledger: Ledger
    holder: Holder
    order_id: str
    tries: int

    def run(self) -> dict[str, LedgerEntry]:
        return self.ledger.place_again(self.holder, self.order_id, self.tries)


def _together(settled: Sequence[Mapping[str, LedgerEntry]]) -> dict[str, LedgerEntry]:
    return {key: entry for each in settled for key, entry in each.items()}


def _sent_params(provider: Provider, call: Call) -> Mapping[str, object]:
    """What a call is sent with: of a document also its pages, for an answer that does not count them."""
    return {**call.params, "units": call.units} if provider.profile.unit_tokens else call.params


def _most_output(params: Mapping[str, object]) -> int:
    """The output to reserve for: the limit of the call, or a guess if it sets no sensible one."""
    named = ("max_completion_tokens", "max_output_tokens", "max_tokens")
    limit = next((params[name] for name in named if name in params), None)
    return limit if type(limit) is int and 0 < limit <= MOST_OUTPUT else USUAL_OUTPUT


def _scopes(claim: Claim) -> tuple[str, ...]:
    return (budgets.TENANT, f"collection:{claim.collection}") if claim.collection else (budgets.TENANT,)
