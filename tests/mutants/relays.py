"""Breaks of what a relay carries (G5)."""

from tests.mutants.catalogue import CALLS, DECIDE, ORDERS, PAY, Patch, mutant

STORE = "tests/conformance/ledger/test_ledger_7_relays.py::test_"
TALK = "tests/conformance/ledger/test_ledger_8_relayed.py::test_"
RULES = "tests/fundamentals/test_core_decide.py::test_"
CARRIED, RELAYS, CARRYING = "store/money/carried.py", "store/money/relays.py", "relay/carrying.py"
CLIENT, SERVER, HAND_OVER = "ledger/relay_client.py", "relay/server.py", "ledger/handover.py"

RELAYED = (
    mutant(
        "relay_knows_its_mark_by_the_claim",
        "G5: worker and relay share a claim, and both send",
        Patch(
            CALLS,
            "        if row.state == CallState.SENT and row.send_token == mark.token:\n"
            '            return order(tx.execute(ORDER, {"order_id": intended.id}).one())\n',
            "        if row.state == CallState.SENT and row.holder == holder:\n"
            '            return order(tx.execute(ORDER, {"order_id": intended.id}).one())\n',
        ),
        by=f"{STORE}a_worker_and_a_relay_with_one_claim_do_not_both_send[sqlite]",
    ),
    mutant(
        "relay_marks_whatever_the_state",
        "G5: an order that was freed is sent",
        Patch(CALLS, '        rows.may(orders.c.state, "call", Verb.SEND),\n', ""),
        Patch(CALLS, "    if changed != len(intended.call_keys):\n", "    if changed < 0:\n"),
        by=f"{STORE}a_void_order_is_not_marked[sqlite]",
    ),
    mutant(
        "relay_marks_unfenced",
        "G2: a worker that lost its task has its order sent",
        Patch(
            CARRIED,
            "        if row.has_task and (row.task_id is None or row.token != row.holder):\n"
            '            return Fenced("stale_epoch")\n'
            "        if (refused := calls.fence(tx, claim)) is not None:\n            return refused\n"
            "        if order.state is CallState.IN_DOUBT:\n",
            "        if order.state is CallState.IN_DOUBT:\n",
        ),
        by=f"{STORE}the_fence_of_a_mark_comes_from_the_row_of_the_order[sqlite]",
    ),
    mutant(
        "relay_marks_relaxed",
        "G5: after a power cut an order was sent that nobody knows of",
        Patch(
            CARRIED,
            '        return db.write("mark", body)\n',
            '        return db.write("mark", body, relaxed=True)\n',
        ),
        by=f"{STORE}a_mark_waits_for_the_disk[sqlite]",
    ),
    mutant(
        "relay_trusts_nothing_of_its_own",
        "G5: a relay that others have buried writes a first byte",
        Patch(
            CARRYING, "            send_by=min(trust.until, deadline),\n", "            send_by=deadline,\n"
        ),
        by=f"{TALK}a_relay_without_trust_in_its_lease_sends_nothing[sqlite]",
    ),
    mutant(
        "carrier_is_ignored",
        "G5: an order of a live relay is doubted with its worker",
        Patch(ORDERS, "        relay=_relay(row),\n", ""),
        by=f"{STORE}an_order_in_the_hands_of_a_relay_survives_its_worker[sqlite]",
    ),
    mutant(
        "expired_relay_is_gone",
        "G5: a renewal on its way comes too late",
        Patch(
            DECIDE,
            "    if suspected is None:\n        return Burial.SUSPECT\n"
            "    return Burial.BURY if suspected >= wait else Burial.LEAVE\n",
            "    return Burial.BURY\n",
        ),
        by=f"{STORE}a_relay_is_buried_at_the_second_look[sqlite]",
    ),
    mutant(
        "suspicion_is_not_cleared",
        "G5: a relay that was late once is buried at the next look",
        Patch(RELAYS, "suspect_at=None, carrying=", "carrying="),
        by=f"{STORE}a_renewal_clears_the_suspicion_also_after_the_lease_has_expired[sqlite]",
    ),
    mutant(
        "buried_without_the_lock",
        "G5: a mark commits after its relay is gone",
        Patch(RELAYS, "    .with_for_update(read=True, key_share=True)\n", ""),
        by=f"{STORE}a_burial_waits_for_a_mark_and_a_renewal_does_not[postgresql]",
    ),
    mutant(
        "told_before_settled",
        "G5: a worker goes on with an answer that a crash may lose",
        Patch(
            CARRYING,
            "            self._exchanges.settle(order, outcome)\n",
            "            threading.Timer(1.0, self._exchanges.settle, (order, outcome)).start()\n",
        ),
        by=f"{TALK}the_worker_is_told_when_the_answer_is_stored[sqlite]",
    ),
    mutant(
        "sent_directly_after_the_mark",
        "G5: the worker sends what the relay has marked",
        Patch(
            CLIENT,
            "                if is_marked:\n                    return Unheard()\n",
            "                if is_marked:\n                    return NotCarried(relay_talk.UNREACHABLE)\n",
        ),
        Patch(CALLS, '        rows.may(orders.c.state, "call", Verb.SEND),\n', ""),
        Patch(CALLS, "    if changed != len(intended.call_keys):\n", "    if changed < 0:\n"),
        by=f"{TALK}a_worker_that_heard_of_the_mark_never_sends_by_itself[sqlite]",
    ),
    mutant(
        "marked_and_then_handed_over",
        "G5: the order is in the worker's hands and dies with it",
        Patch(
            PAY,
            "            if (relayed := self._relayed(holder, marked, tries)) is not None:\n",
            "            self._send(holder, marked)\n"
            "            if (relayed := self._relayed(holder, marked, tries)) is not None:\n",
        ),
        by=f"{TALK}the_relay_sends_and_settles_for_the_worker[sqlite]",
    ),
    mutant(
        "drain_drops",
        "G5: a relay that is told to stop leaves its orders in doubt",
        Patch(
            SERVER,
            "            thread.join(timeout)\n            if thread.is_alive():\n",
            "            if not thread:\n",
        ),
        by=f"{TALK}a_draining_relay_ends_what_is_marked_and_takes_nothing_more[sqlite]",
    ),
    mutant(
        "marked_before_the_connection_is_up",
        "G5: what waits for a connection is in doubt when the relay dies",
        Patch(
            CARRYING,
            "        deadline = self._host.clock() + order.deadline\n",
            "        deadline = self._host.clock() + order.deadline\n"
            "        self._gate(order, attempt, token, trust, waiter)\n",
        ),
        by=f"{TALK}nothing_is_marked_before_the_provider_is_connected[sqlite]",
    ),
)
