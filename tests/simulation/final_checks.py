"""The reckoning once faults have stopped: all that was accepted has ended, the bill is complete (G4, G5)."""

import json
from collections import Counter

from tests.simulation import oracles
from tests.simulation.oracles import LIVE, OPEN, Check
from tests.simulation.provider import Service
from tests.simulation.world import Violation


def quiet(check: Check) -> bool:
    """True when no run, task or order is under way."""
    return (
        not any(run[oracles.R_STATUS] in LIVE for run in check.runs.values())
        and not any(task[oracles.T_STATE] in OPEN for task in check.tasks.values())
        and not any(order[oracles.O_STATE] in {"intent", "sent"} for order in check.orders.values())
    )


def unfinished(check: Check) -> str:
    """What is still under way, for a sentence."""
    parts = [
        f"run {one[oracles.R_SUBJECT]} of {one[oracles.R_CONTENT]} {one[oracles.R_STATUS]}"
        for one in check.runs.values()
        if one[oracles.R_STATUS] in LIVE
    ]
    parts += [
        f"task {one[0]} {one[oracles.T_STATE]}"
        for one in check.tasks.values()
        if one[oracles.T_STATE] in OPEN
    ]
    parts += [
        f"order {one[0][:8]} {one[oracles.O_STATE]}"
        for one in check.orders.values()
        if one[oracles.O_STATE] in {"intent", "sent"}
    ]
    return "; ".join(parts)


def reckon(check: Check, service: Service) -> None:
    """Raise Violation for the first promise that does not hold at rest."""
    _heads(check)
    _causes(check)
    _heard(check, service)
    _bill(check, service)
    _budgets(check)


def carried(check: Check, service: Service) -> None:
    """If nothing but workers was faulted and the provider behaved, nothing is paid twice or in doubt."""
    if not check.world.scenario.only_workers:
        return
    twice = sorted(text for (_, text), times in service.charges.items() if times > 1)
    doubts = sorted(order_id[:8] for order_id, order in check.orders.items() if order[oracles.O_DOUBTS])
    if twice or doubts:
        raise Violation("G5", f"only workers died, yet {twice} were paid twice and {doubts} in doubt")


def _heads(check: Check) -> None:
    for head_id, head in check.heads.items():
        run = check.runs.get(head[oracles.H_RUN])
        if run is None:
            continue
        status, shown = run[oracles.R_STATUS], head[oracles.H_STATUS]
        fits = {
            "success": {"success"} if head[oracles.H_VISIBLE] else {"idle"},
            "failed": {"failed"},
            "cancelled": {"success"} if head[oracles.H_VISIBLE] else {"idle"},
        }.get(status, set())
        if shown not in fits:
            raise Violation(
                "G4", f"{head[oracles.H_SUBJECT]} is shown as {shown}, its last run ended as {status}"
            )
        if status == "success" and head[oracles.H_PUBLISHED] != head[oracles.H_GENERATION]:
            raise Violation("G3", f"head {head_id} succeeded but publishes {head[oracles.H_PUBLISHED]}")


EXPECTED = {
    "plain": {None, "superseded", "cancelled", "deleted"},
    "raise": {"work_raised"},
    "nonsense": {"bad_result"},
    "reject": {"provider_rejected"},
    "poison": {"abandoned"},
    "hang": {"abandoned", "time_limit"},
}
TROUBLE = {"provider_unavailable", "abandoned"}


def _causes(check: Check) -> None:
    """A run fails only for a reason that lies in its content or in what was done to it."""
    for run in check.runs.values():
        flavour = run[oracles.R_CONTENT].partition(":")[0]
        code, status = run[oracles.R_ERROR], run[oracles.R_STATUS]
        usual = EXPECTED["plain"] | EXPECTED.get(flavour, set())
        if code not in usual | TROUBLE or (
            flavour in {"raise", "nonsense", "poison"}
            and status == "success"
            and run[oracles.R_KIND] == "index"
        ):
            raise Violation("G4", f"run {run[oracles.R_SUBJECT]} of {flavour} ended as {status} ({code})")


def _bill(check: Check, service: Service) -> None:
    """Every charge of the provider is in the ledger: paid, second or in doubt."""
    sends: dict[str, set[int]] = {}
    paid: Counter[str] = Counter()
    for order_id, send, type_name in check.reader.execute(
        "SELECT order_id, send, sort FROM holdfast_charges"
    ):
        sends.setdefault(order_id, set()).add(send)
        paid[order_id] += type_name == "paid"
    for order_id, count in service.order_charges.items():
        order = check.orders.get(order_id)
        if order is None:
            raise Violation(
                "G5", f"the provider charged order {order_id[:8]}, which the ledger does not know"
            )
        known = len(sends.get(order_id, ()))
        if known < (1 if order[oracles.O_KEYED] else count):
            raise Violation("G5", f"order {order_id[:8]} was charged {count} times, the bill shows {known}")
    for order_id, order in check.orders.items():
        if (order[oracles.O_STATE] == "settled") != (paid[order_id] == 1) or paid[order_id] > 1:
            raise Violation(
                "G5", f"order {order_id[:8]} is {order[oracles.O_STATE]} with {paid[order_id]} payments"
            )
        if order[oracles.O_STATE] == "settled" and not service.order_charges[order_id]:
            raise Violation("G5", f"order {order_id[:8]} is in the bill but was never charged")
    rows = check.reader.execute("SELECT key, state, order_id FROM holdfast_calls")
    for key, state, order_id in rows:
        owner = check.orders.get(order_id)
        given_up = owner is not None and owner[oracles.O_STATE] == "in_doubt" and state == "void"
        if owner is None or (state != owner[oracles.O_STATE] and not given_up):
            raise Violation("G5", f"call {key[:8]} is {state}, its order {owner and owner[oracles.O_STATE]}")


def _heard(check: Check, service: Service) -> None:
    """Results that a process held in its hands, and lived, are kept: they were paid for."""
    for process, order_id in service.heard:
        if not process.dead and check.orders[order_id][oracles.O_STATE] != "settled":
            raise Violation("G5", f"{process.name} had the results of order {order_id[:8]} and lost them")


def _possible_charges(order: oracles.Row) -> int:
    """How often an open order may be charged: once under a key, else once per doubt and send under way."""
    if order[oracles.O_KEYED]:
        return 1
    return order[oracles.O_DOUBTS] + (order[oracles.O_STATE] in {"intent", "sent"})


SPENT = """
SELECT coalesce(sum(c.amount), 0) FROM holdfast_charges c JOIN holdfast_orders o ON o.id = c.order_id
WHERE (c.sort <> 'in_doubt' OR (NOT c.cleared AND o.state = 'settled')) AND c.tenant = ?
"""


def _budgets(check: Check) -> None:
    """At rest every reservation is the sum of the orders that are still in doubt."""
    for budget in check.budgets.values():
        tenant, scope = budget[oracles.B_TENANT], budget[oracles.B_SCOPE]
        reserved = sum(
            order[oracles.O_ESTIMATE] * _possible_charges(order)
            for order in check.orders.values()
            if order[oracles.O_TENANT] == tenant
            and scope in json.loads(order[oracles.O_SCOPES])
            and order[oracles.O_STATE] in {"in_doubt", "parked", "intent", "sent"}
        )
        if budget[oracles.B_RESERVED] != reserved:
            held = budget[oracles.B_RESERVED]
            raise Violation("G5", f"{tenant}/{scope} reserves {held}, its open orders add up to {reserved}")
        expected = (tenant,) if scope == "tenant" else (tenant, scope)
        spent = check.reader.execute(SPENT if scope == "tenant" else f"{SPENT} AND c.scope = ?", expected)
        if (total := spent.fetchone()[0]) != budget[oracles.B_SPENT]:
            message = f"{tenant}/{scope} has spent {budget[oracles.B_SPENT]}, its charges add up to {total}"
            raise Violation("G5", message)


def requests_kept(check: Check, accepted: dict[str, str]) -> None:
    """What was accepted has a run that ended; nobody's request made two, answered or not (G4, G6)."""
    twice = check.reader.execute(
        "SELECT actor FROM holdfast_runs WHERE actor LIKE 'ask%' GROUP BY actor HAVING count(*) > 1"
    ).fetchone()
    if twice is not None:
        raise Violation("G6", f"{twice[0]} made two runs")
    noted = check.reader.execute(
        "SELECT actor FROM holdfast_journal WHERE verb = 'request' AND actor LIKE 'ask%'"
        " GROUP BY actor, reason HAVING count(*) > 1"
    ).fetchone()
    if noted is not None:
        raise Violation("G6", f"{noted[0]} is in the journal twice")
    if check.world.scenario.history_retention is None:
        for run_id in accepted:
            if run_id not in check.runs:
                raise Violation("G4", f"the accepted run {run_id[:8]} is gone")


UNFOLLOWED = """
SELECT h.subject FROM holdfast_heads h
JOIN holdfast_actions a ON a.tenant = h.tenant AND a.collection = h.collection
LEFT JOIN holdfast_follow_ups f
  ON f.action_id = a.id AND f.head_id = h.id AND f.generation = h.published_generation
WHERE a.id = ? AND a.active AND h.visible AND h.kind = 'index' AND f.run_id IS NULL
"""


def followed_up(check: Check, actions: list[tuple[str, int]]) -> None:
    """Every ready document of a collection has been followed up by each of its actions."""
    for _, action in actions:
        missed = check.reader.execute(UNFOLLOWED, (action,)).fetchone()
        if missed is not None:
            raise Violation("G4", f"action {action} has not followed up {missed[0]}")
