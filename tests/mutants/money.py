"""Breaks of the ledger (G5)."""

from tests.mutants.catalogue import CALLS, DECIDE, EXCHANGES, G2, G4, G5, ORDERS, PAY, Patch, mutant

CARRIERS = "tests/conformance/ledger/test_ledger_6_carriers.py::test_"
AT_ONCE = "tests/conformance/ledger/test_ledger_5_at_once.py::test_"

MONEY = (
    mutant(
        "settle_before_send",
        "G5: a crash leaves a result that never was",
        Patch(
            EXCHANGES,
            "            outcome = provider.send(exchange, holder.trusted)\n",
            "            orders.settle(\n                self._db,\n                order.id,\n"
            "                order.sends,\n"
            "                orders.Receipt([b'x' for _ in order.call_keys], [1 for _ in order.call_keys],"
            " [1 for _ in order.call_keys], 'x'),\n            )\n"
            "            outcome = provider.send(exchange, holder.trusted)\n",
        ),
        by=(
            f"{G5}a_server_error_leaves_an_order_in_doubt_and_never_void[sqlite-keyed-True]",
            f"{G4}a_worker_killed_at_any_point_loses_nothing[sqlite]",
        ),
    ),
    mutant(
        "settle_is_fenced",
        "G5: what was paid is thrown away",
        Patch(
            ORDERS,
            "        tokens, cost = sum(receipt.tokens), receipt.total_cost\n",
            "        tokens, cost = sum(receipt.tokens), receipt.total_cost\n"
            '        if not tx.execute(FACTS, {"order_id": order_id}).one().held:\n'
            "            return False\n",
        ),
        by=f"{G5}what_was_paid_is_kept_though_its_worker_was_fenced_out_and_is_reused_for_free[sqlite-request]",
    ),
    mutant(
        "send_without_mark",
        "G5: a fenced worker sends",
        Patch(
            PAY,
            "        marked = calls.send(self._db, holder.claim, intended, mark)\n",
            "        marked = intended\n",
        ),
        by=f"{G5}an_intent_whose_worker_was_fenced_out_is_never_sent[sqlite-request]",
    ),
    mutant(
        "mark_does_not_wait_for_the_disk",
        "G5: after a power cut an order was sent that nobody knows of",
        Patch(
            CALLS,
            '        return db.write("send", body)\n',
            '        return db.write("send", body, relaxed=True)\n',
        ),
        by="tests/indexing/test_power_cut.py::"
        "test_after_a_power_cut_the_document_is_indexed_and_nothing_is_paid_twice[send.heard]",
    ),
    mutant(
        "mark_at_once_does_not_wait_for_the_disk",
        "G5: after a power cut an order was sent that nobody knows of",
        Patch(
            CALLS,
            '    return db.write("send_at_once", body, relaxed=free)\n',
            '    return db.write("send_at_once", body, relaxed=True)\n',
        ),
        by="tests/indexing/test_power_cut.py::"
        "test_after_a_power_cut_an_order_that_was_marked_at_once_is_known[send.heard]",
    ),
    mutant(
        "mark_at_once_without_the_fence",
        "G5: a fenced worker sends",
        Patch(
            CALLS,
            "        if (refused := fence(tx, claim)) is not None:\n            return refused\n"
            "        if tx.again and (known := ",
            "        if tx.again and (known := ",
        ),
        by=f"{G2}a_write_after_the_right_to_it_was_taken_changes_nothing[sqlite-send_at_once]",
    ),
    mutant(
        "doubt_is_taken_for_a_fresh_mark",
        "G5: an order that was put in doubt meanwhile is sent as if it had just been marked",
        Patch(
            CALLS,
            "            return order(known) if mine else Fenced(INTENT_LOST)\n",
            "            return order(known)\n",
        ),
        by=f"{AT_ONCE}a_mark_put_in_doubt_while_its_answer_was_lost_is_sent_once[sqlite]",
    ),
    mutant(
        "mark_is_not_all_or_none",
        "G5",
        Patch(
            CALLS,
            "    if changed != len(intended.call_keys):\n        raise NotAllMineError",
            "    if changed < 0:\n        raise NotAllMineError",
        ),
        by=f"{G5}a_mark_is_made_for_all_calls_of_an_order_or_for_none[sqlite]",
    ),
    mutant(
        "regrouped_resend",
        "G5: doubts are freed and grouped anew",
        Patch(
            PAY,
            "[_Again(self, holder, order_id, tries).run for order_id in doubtful]",
            "[lambda one=order_id: orders.resolve(self._db, one, charged=False) for order_id in doubtful]",
        ),
        by=f"{G5}an_order_charged_and_cut_is_resent_byte_for_byte[sqlite]",
    ),
    mutant(
        "new_key_on_resend",
        "G5",
        Patch(
            EXCHANGES,
            "            idempotency_key=order.idempotency_key,\n",
            '            idempotency_key=f"{order.idempotency_key}-{order.sends}",\n',
        ),
        by=f"{G5}an_order_charged_and_cut_is_resent_byte_for_byte[sqlite]",
    ),
    mutant(
        "server_error_is_void",
        "G5",
        Patch(
            "providers/statuses.py",
            "    if status in profile.uncharged:\n",
            "    if status in profile.uncharged or status >= 500:\n",
        ),
        by=f"{G5}a_server_error_leaves_an_order_in_doubt_and_never_void[sqlite-keyed-True]",
    ),
    mutant(
        "refused_resend_is_void",
        "G5",
        Patch(
            ORDERS,
            "        if row.doubts:\n            _set_state(tx, row, CallState.IN_DOUBT",
            "        if False:\n            _set_state(tx, row, CallState.IN_DOUBT",
        ),
        by=f"{G5}a_refusal_of_a_resend_does_not_free_what_the_first_send_may_have_cost[sqlite-rate_limit]",
    ),
    mutant(
        "intent_of_another_is_taken",
        "G5: two workers hold one key",
        Patch(
            CALLS,
            "free = [row.key for row in entries if row.state == CallState.VOID]",
            "free = [row.key for row in entries if row.state in {CallState.VOID, CallState.INTENT}]",
        ),
        by=f"{G5}threads_that_intend_the_same_keys_in_the_same_moment_share_them_out",
    ),
    mutant(
        "key_without_tenant",
        "G5: what one tenant holds shows to another",
        Patch(
            "core/keys.py",
            "return digest(KEY_VERSION, tenant, provider,",
            "return digest(KEY_VERSION, provider,",
        ),
        by=f"{G5}two_tenants_pay_each_for_themselves[sqlite]",
    ),
    mutant(
        "ledger_without_tenant",
        "G5: one tenant reads another's results",
        Patch(
            "core/keys.py",
            "return digest(KEY_VERSION, tenant, provider,",
            "return digest(KEY_VERSION, provider,",
        ),
        Patch(
            CALLS,
            ').where(calls.c.tenant == bindparam("tenant"), key_in(calls.c.key, _keys))',
            ").where(key_in(calls.c.key, _keys))",
        ),
        by=f"{G5}two_tenants_pay_each_for_themselves[sqlite]",
    ),
    mutant(
        "budget_not_reserved_before_the_call",
        "G5: the cap is looked at when the money is gone",
        Patch(
            CALLS, "    budgets.reserve(tx, claim.tenant, scopes, estimate, unpriced=draft.unpriced)\n", ""
        ),
        by=f"{G5}a_budget_is_not_passed_by_eight_who_spend_at_once[sqlite]",
    ),
    mutant(
        "resend_not_reserved",
        "G5: doubts pass the cap",
        Patch(
            CALLS,
            "    if not row.keyed:\n"
            "        budgets.reserve(tx, row.tenant, row.scopes, row.estimate, unpriced=row.unpriced)\n",
            "",
        ),
        by=f"{G5}the_doubts_of_a_provider_without_keys_stay_within_the_budget[sqlite]",
    ),
    mutant(
        "dead_intent_keeps_its_money",
        "G5",
        Patch(
            ORDERS,
            "            _set_state(tx, row, verdict.state, verdict.reason)\n"
            "            budgets.account(tx, row.tenant, row.scopes, spent=0, freed=row.estimate)\n",
            "            _set_state(tx, row, verdict.state, verdict.reason)\n",
        ),
        Patch("engine/sweep.py", "lambda: budgets.recompute(self._db)", "lambda: 0"),
        by=f"{G5}money_promised_by_a_dead_worker_comes_back_and_the_cap_still_holds[sqlite]",
    ),
    mutant(
        "live_order_called_doubtful",
        "G5: those who wait resend a live worker's order",
        Patch(DECIDE, "    if order.silence <= 0:\n        return None\n", ""),
        by=(
            f"{G5}a_live_holders_order_is_left_alone_by_those_who_wait_for_it[sqlite-keyed]",
            f"{CARRIERS}an_order_is_waited_for_though_its_task_was_let_go_of[keyed-sqlite]",
        ),
    ),
    mutant(
        "frozen_is_taken_for_dead",
        "G5: a stopped process goes on with an order that another has resent",
        Patch("engine/processes.py", '_GONE = frozenset("ZX")', '_GONE = frozenset("ZXTt")'),
        by=f"{CARRIERS}a_frozen_process_is_not_dead[sqlite]",
    ),
    mutant(
        "id_alone_names_a_process",
        "G7: a later process with the same id keeps a dead one's order for ever",
        Patch("engine/processes.py", "facts[_STARTED] != rest or ", ""),
        by=f"{CARRIERS}a_process_that_its_parent_does_not_bury_is_dead",
    ),
    mutant(
        "no_grace_for_orders",
        "G5: answers in memory are doubted when the database comes back",
        Patch(
            DECIDE,
            "    if order.grace:\n        return None\n    if order.overdue > waits.settle:\n",
            "    if order.overdue > waits.settle:\n",
        ),
        by=f"{CARRIERS}after_an_outage_nobody_doubts_what_may_be_in_somebodys_hands[sqlite]",
    ),
    mutant(
        "doubted_at_its_deadline",
        "G5: an answer that is being settled is resent",
        Patch(DECIDE, "    if order.overdue > waits.settle:\n", "    if order.overdue > 0:\n"),
        by=f"{CARRIERS}an_answer_that_is_being_kept_at_the_deadline_is_not_doubted[sqlite]",
    ),
    mutant(
        "dear_orders_are_doubted_early",
        "G5: the price of a mistake is not asked for",
        Patch(DECIDE, "(order.cheap and order.silence > waits.silent)", "(order.silence > waits.silent)"),
        by=f"{CARRIERS}a_silent_carriers_order_waits_for_the_lease_and_a_moment_or_if_dear_for_its_deadline[sqlite]",
    ),
    mutant(
        "caller_outside_a_task_is_dead",
        "G5: what somebody at the door waits for is taken away",
        Patch(ORDERS, "if row.task_id is not None else lives,", "if row.task_id is not None else False,"),
        by=f"{CARRIERS}a_caller_outside_a_task_is_alive_while_its_process_is[keyed-sqlite]",
    ),
    mutant(
        "paid_answer_thrown_away",
        "G5: what was paid is lost with the database's absence",
        Patch(
            EXCHANGES,
            "                self._host.sleep(self._policy.backoff.first)\n",
            "                raise\n",
        ),
        by=f"{CARRIERS}an_answer_is_held_as_long_as_the_process_lives[sqlite]",
    ),
    mutant(
        "answer_of_no_use_is_bought_again",
        "G5: an unreadable answer is paid for five times",
        Patch(PAY, "row.status_code is not None and 200 <= row.status_code < 300", "False"),
        by=f"{CARRIERS}an_answer_of_no_use_is_parked_after_its_first_charge[sqlite-unreadable]",
    ),
)
