"""Breaks of what is told to others, and of what waits for money."""

from tests.mutants.catalogue import G3, G6, G7, REQUESTS, Mutant, Patch, mutant

DELIVERIES, TRIES, WEBHOOK = (
    "store/follow_ups/deliveries.py",
    "store/follow_ups/delivery_attempts.py",
    "kinds/webhook.py",
)
LIFE = "tests/actions/test_race.py::test_the_life_of_an_event_passes_every_point_there_is[sqlite]"
EARLY = f"{G3}a_callback_exists_from_the_commit_of_the_end_that_it_tells_of"
DELIVERY = "tests/webhooks/test_1_delivery.py::test_"
TROUBLE = "tests/webhooks/test_2_trouble.py::test_"

HOOKS: tuple[Mutant, ...] = (
    mutant(
        "event_before_its_commit",
        "an event is told before it is true, and of work that still holds its place",
        Patch(
            DELIVERIES,
            "    post(tx, notice, tx.db.token())\n",
            '    tx.db.write("early", lambda own: post(own, notice, own.db.token()))\n',
        ),
        by=tuple(f"{EARLY}[postgresql-{end}]" for end in ("finish", "fail", "cancel", "request")),
    ),
    mutant(
        "fire_and_forget",
        "an event that its receiver did not take is gone",
        Patch(WEBHOOK, "        if 200 <= posted.status < 300:\n", "        if posted.status:\n"),
        by=(f"{TROUBLE}a_receiver_that_fails_for_a_while_gets_the_event_in_the_end[sqlite]", LIFE),
    ),
    mutant(
        "another_key_for_each_try",
        "a receiver cannot tell a repetition from another event",
        Patch(WEBHOOK, '("Idempotency-Key", event_id)', '("Idempotency-Key", f"{event_id}-{parcel.tries}")'),
        by=LIFE,
    ),
    mutant(
        "signature_without_its_time",
        "a recording can be played again for ever",
        Patch(WEBHOOK, 'f"{at}.".encode() + body', "body"),
        by="tests/webhooks/test_recipe.py::test_what_was_sent_is_genuine",
    ),
    mutant(
        "superseded_tells_nobody",
        "whoever asked to be told waits for ever",
        Patch(
            REQUESTS,
            "    return after_end(tx, run_id, status, code, message)\n",
            "    if status is Status.SUPERSEDED:\n        return 0\n"
            "    return after_end(tx, run_id, status, code, message)\n",
        ),
        by=(f"{DELIVERY}every_end_of_a_run_is_told_to_whoever_asked_for_it[sqlite-job.superseded]", LIFE),
    ),
    mutant(
        "try_is_not_fenced",
        "G2: a worker that lost the delivery writes over another's",
        Patch(
            TRIES,
            "            return held\n        tx.execute(MISSED,",
            "            pass\n        tx.execute(MISSED,",
        ),
        by=f"{TROUBLE}a_superseded_try_writes_nothing[sqlite-500]",
    ),
    mutant(
        "tests_share_their_webhook",
        "G6: of two clicks both send",
        Patch(
            "store/follow_ups/webhook_tests.py",
            ".with_for_update(key_share=True)",
            ".with_for_update(read=True)",
        ),
        by=f"{G6}of_two_clicks_on_the_test_of_a_webhook_one_sends[postgresql]",
    ),
    mutant(
        "sweep_waits_for_ever",
        "G7: the sweep waits for a row that it alone can free",
        Patch(
            "store/base/dialect.py",
            '            begin += f"; SET LOCAL lock_timeout = {wait}"\n',
            "            pass\n",
        ),
        by=f"{G7}a_sweep_that_meets_a_row_of_a_frozen_session_goes_on_and_ends_it",
    ),
    mutant(
        "waits_for_money_though_there_is_some",
        "work that waits for a budget does not go on when it is raised",
        Patch(
            "service/billing.py",
            "        woken = budgets.resume(self._db, tenant, scope)\n",
            "        woken: dict[str, int] = {}\n",
        ),
        by="tests/money/test_5_budget_races.py::"
        "test_eight_processes_stop_at_the_cap_and_go_on_when_it_is_raised[sqlite]",
    ),
)
