"""Breaks of the fence, of leases and of generations (G1 to G4, G6, G7)."""

from tests.mutants.catalogue import (
    CLAIMS,
    DECIDE,
    DUTIES,
    EXCHANGES,
    G1,
    G2,
    G3,
    G4,
    G6,
    G7,
    LEASES,
    LOSSES,
    REQUESTS,
    ROWS,
    TASKS,
    Patch,
    mutant,
)

STORIES = "tests/fundamentals/test_engine_3_recovery.py::test_"

# Whoever wants a head also stands in line by an advisory lock, which alone would hide a missing row lock.
NO_QUEUE = Patch(
    "store/base/dialect.py",
    '@compiles(queue_to_change, "sqlite")\n',
    '@compiles(queue_to_change, "sqlite")\n'
    '@compiles(queue_to_share, "postgresql")\n@compiles(queue_to_change, "postgresql")\n',
)

FENCE = (
    mutant(
        "drop_live_check",
        "G2",
        Patch(DECIDE, '    if run_status not in LIVE:\n        return Fenced(f"run_{run_status}")\n', ""),
        by=f"{G2}each_leg_of_the_fence_refuses_every_write_alone[sqlite-run]",
    ),
    mutant(
        "drop_generation_check",
        "G2",
        Patch(
            DECIDE,
            '    if head.generation != claim.generation:\n        return Fenced("stale_generation")\n',
            "",
        ),
        by=f"{G2}each_leg_of_the_fence_refuses_every_write_alone[sqlite-generation]",
    ),
    mutant(
        "drop_epoch_check",
        "G2",
        Patch(
            DECIDE,
            "if task.epoch != claim.epoch or task.token != claim.token:",
            "if task.token != claim.token:",
        ),
        by=f"{G2}each_leg_of_the_fence_refuses_every_write_alone[sqlite-epoch]",
    ),
    mutant(
        "drop_token_check",
        "G2",
        Patch(
            DECIDE,
            "if task.epoch != claim.epoch or task.token != claim.token:",
            "if task.epoch != claim.epoch:",
        ),
        by=f"{G2}each_leg_of_the_fence_refuses_every_write_alone[sqlite-token]",
    ),
    mutant(
        "drop_state_check",
        "G2",
        Patch(
            DECIDE,
            "    if task.state is not TaskState.RUNNING:\n        return Fenced(f",
            "    if False:\n        return Fenced(f",
        ),
        by=f"{G2}each_leg_of_the_fence_refuses_every_write_alone[sqlite-state]",
    ),
    mutant(
        "fence_without_locks",
        "G2: tested beside the write, on rows from before the wait",
        Patch(
            ROWS,
            "return query.with_for_update(read=True) if share else query.with_for_update(key_share=True)",
            "return query",
        ),
        NO_QUEUE,
        Patch(TASKS, "    .with_for_update(key_share=True, of=tasks)\n", ""),
        by=(
            f"{G2}a_superseded_run_does_not_publish_while_it_waits_for_the_lock",
            f"{G2}a_write_that_waits_while_the_right_to_it_is_taken_changes_nothing[postgresql-finish]",
        ),
    ),
    mutant(
        "fence_without_task_lock",
        "G2: the sweep and the holder write the same row",
        Patch(TASKS, "    .with_for_update(key_share=True, of=tasks)\n", ""),
        by=f"{G2}a_write_that_waits_while_the_right_to_it_is_taken_changes_nothing[postgresql-finish]",
    ),
    mutant(
        "finish_shares_the_head",
        "G3: two last finishers each see the other's slice open",
        Patch(
            TASKS,
            "lock = rows.HEAD_FOR_CHANGE if change else rows.HEAD_FOR_SHARE",
            "lock = rows.HEAD_FOR_SHARE",
        ),
        by=f"{G3}of_two_last_finishers_inside_their_transactions_exactly_one_publishes",
    ),
    mutant(
        "request_without_lock",
        "G1: two requests decide on the same head",
        Patch(
            ROWS,
            '        heads.c.subject == bindparam("subject"),\n    )\n    .with_for_update(key_share=True)\n'
            ")",
            '        heads.c.subject == bindparam("subject"),\n    )\n)',
        ),
        NO_QUEUE,
        by=f"{G1}two_changed_contents_at_once_make_two_generations_and_one_winner[postgresql]",
    ),
    mutant(
        "claim_without_lock",
        "G1: one task for two workers",
        Patch(
            CLAIMS,
            "        .limit(1)\n        .with_for_update(key_share=True, skip_locked=True, of=tasks)\n",
            "        .limit(1)\n",
        ),
        by=f"{G1}a_task_on_its_way_to_one_worker_is_not_given_to_another[postgresql]",
    ),
    mutant(
        "leftovers_kept",
        "G3: an older epoch's chunks are published with the newer one's",
        Patch(
            TASKS,
            "    if claim.epoch > 1:\n        tx.execute(DELETE_LEFTOVERS, _location(claim))\n"
            "    _leave_behind(",
            "    _leave_behind(",
        ),
        Patch(
            TASKS,
            "        if claim.epoch > 1:\n            tx.execute(DELETE_LEFTOVERS, _location(claim))\n"
            "        staging.put(tx, prepared, again",
            "        staging.put(tx, prepared, again",
        ),
        by=f"{G2}what_an_older_epoch_staged_is_gone_before_the_slice_is_published[sqlite]",
    ),
)

LEASE = (
    mutant(
        "epoch_kept_on_release",
        "G2",
        Patch(
            CLAIMS,
            '"lease_until": 0.0, "epoch": tasks.c.epoch + 1, "signed_at": now()',
            '"lease_until": 0.0, "signed_at": now()',
        ),
        by=f"{G2}the_epoch_rises_at_every_change_of_holder_also_to_nobody[sqlite]",
    ),
    mutant(
        "epoch_kept_on_expire",
        "G2",
        Patch(
            LOSSES,
            "        epoch=tasks.c.epoch + 1,\n        owner=None,",
            "        owner=None,",
        ),
        by=f"{G2}the_epoch_rises_at_every_change_of_holder_also_to_nobody[sqlite]",
    ),
    mutant(
        "renewal_re_acquires",
        "G2",
        Patch(
            CLAIMS, "update(tasks).where(_HELD, tasks.c.lease_until > now())", "update(tasks).where(_HELD)"
        ),
        by=(
            f"{G2}a_renewal_never_takes_back_what_ran_out[sqlite]",
            f"{LEASES}a_renewal_after_expiry_does_not_re_acquire[sqlite]",
        ),
    ),
    mutant(
        "local_clock_for_expiry",
        "G7",
        Patch(
            DUTIES,
            '        tasks.c.lease_until < now(),\n        tasks.c.lease_until >= bindparam("since"),\n',
            '        tasks.c.lease_until < bindparam("local", callable_=lambda: __import__("time").time()),\n'
            '        tasks.c.lease_until >= bindparam("since"),\n',
        ),
        by=f"{G7}a_clock_that_is_years_off_makes_no_lease_run_out[sqlite]",
    ),
    mutant(
        "sweep_takes_live_leases",
        "G7",
        Patch(
            DUTIES,
            '        tasks.c.lease_until < now(),\n        tasks.c.lease_until >= bindparam("since"),\n',
            '        tasks.c.lease_until >= bindparam("since"),\n',
        ),
        by=f"{G7}the_sweep_takes_only_what_ran_out[sqlite]",
    ),
    mutant(
        "attempt_counted_on_release",
        "G7",
        Patch(
            CLAIMS,
            "values(state=literal(TaskState.QUEUED), due_at=now(), **_let_go)",
            "values(state=literal(TaskState.QUEUED), due_at=now(), attempts=tasks.c.attempts + 1, **_let_go)",
        ),
        by=f"{G2}a_release_never_counts_as_an_attempt[sqlite]",
    ),
    mutant(
        "takeover_of_a_live_lease",
        "G1",
        Patch(DECIDE, "    if life.live_lease:\n        return None\n", ""),
        by=f"{G1}a_live_lease_is_never_taken_over_however_long_the_run_is_silent[sqlite]",
    ),
    mutant(
        "lock_held_fails_the_run",
        "G6",
        Patch(
            CLAIMS,
            "    if not landed:\n        if retry:",
            "    if reason is Skip.LOCK_HELD:\n"
            '        tx.execute(update(runs).where(runs.c.id == row.run_id).values(status="failed"))\n'
            "    if not landed:\n        if retry:",
        ),
        by=f"{G6}a_delivery_of_a_held_task_never_harms_the_live_run[sqlite]",
    ),
    mutant(
        "trust_does_not_bound_the_first_byte",
        "G2: a thawed worker sends",
        Patch(EXCHANGES, "send_by=min(holder.trusted_until(), deadline),", "send_by=deadline,"),
        by=f"{G2}a_process_frozen_before_its_first_byte_sends_nothing_when_it_thaws_too_late[sqlite]",
    ),
    mutant(
        "loss_of_a_worker_is_an_attempt",
        "G4: a storm of kills fails innocent work",
        Patch(DECIDE, "    if lost.loss in {Loss.PROCESS_DIED, Loss.OVERRAN}:\n", "    if lost.loss:\n"),
        by=f"{STORIES}a_storm_in_which_whole_workers_disappear_is_waited_out",
    ),
    mutant(
        "death_of_a_process_is_a_loss",
        "G4: poison takes twenty processes",
        Patch(DECIDE, "    if lost.loss in {Loss.PROCESS_DIED, Loss.OVERRAN}:\n", "    if False:\n"),
        by=f"{STORIES}work_that_kills_its_workers_is_given_up",
    ),
    mutant(
        "mere_wait_is_counted",
        "G4: who waited for a dead worker's order is called poison",
        Patch(DECIDE, "    if lost.only_waited:\n", "    if False:\n"),
        by=f"{G7}a_holder_that_only_waited_for_anothers_order_counts_for_nothing[sqlite]",
    ),
    mutant(
        "late_word_of_a_death_is_believed",
        "G2: the task is taken from its next holder",
        Patch(LOSSES, " or row.epoch != epoch:\n            return None", ":\n            return None"),
        by=f"{G7}a_death_that_is_told_late_takes_nothing_from_the_next_holder[sqlite]",
    ),
    mutant(
        "sweep_does_not_leave_it_to_the_parent",
        "G4: the death of the one process that ran a task is taken for the loss of its worker",
        Patch(LOSSES, "died(row.process) and (not row.parent or died(row.parent))", "died(row.process)"),
        by=f"{G7}a_dead_process_is_left_to_its_parent_while_that_one_lives[sqlite]",
    ),
    mutant(
        "renewal_after_the_end_is_a_lost_lease",
        "G7: a task that ended well is told as a lost lease",
        Patch("engine/watchdog.py", "        if not granted and work.is_ending:\n", "        if False:\n"),
        by=f"{G7}a_renewal_that_meets_the_end_of_its_task_is_no_lost_lease[sqlite]",
    ),
)

GENERATION = (
    mutant(
        "supersede_leaves_tasks_open",
        "G1: a claim looks at the task alone",
        Patch(REQUESTS, "END = Together(_end_run, _close_tasks)", "END = Together(_end_run)"),
        by=f"{G1}two_changed_contents_at_once_make_two_generations_and_one_winner[sqlite]",
    ),
    mutant(
        "unpublish_on_fail",
        "G3",
        Patch(
            REQUESTS,
            '    .values(status=bindparam("b_status"), updated_at=now())\n',
            '    .values(status=bindparam("b_status"), visible=False, updated_at=now())\n',
        ),
        by=f"{G3}an_unpublished_end_leaves_the_old_generation_answering[sqlite-fail]",
    ),
    mutant(
        "publish_may_go_down",
        "G3",
        Patch(
            TASKS,
            ', heads.c.published_generation < bindparam("b_generation"))',
            ")",
        ),
        by=f"{G3}the_publishing_statement_itself_only_goes_up[sqlite]",
    ),
    mutant(
        "slices_outside_the_plans_transaction",
        "G3: a half-planned run",
        Patch(
            TASKS,
            "        tx.execute(\n            INSERT_TASKS,\n            [\n                {**born,",
            "        insert_tasks = lambda values: db.write(\n"
            '            "slices", lambda outside: outside.execute(INSERT_TASKS, values)\n        )\n'
            "        insert_tasks(\n            [\n                {**born,",
        ),
        by=f"{G3}a_half_planned_run_never_exists[postgresql-plan.commit]",
    ),
    mutant(
        "prune_below_the_head",
        "G3: what answers is gone",
        Patch(
            "store/protocol/prune.py",
            "reach = (0, run.generation) if published else",
            "reach = (0, head.generation) if published else",
        ),
        by=f"{G3}pruning_beside_a_running_replacement_keeps_what_answers_and_what_is_made[sqlite]",
    ),
    mutant(
        "delete_keeps_the_generation",
        "G1: generations restart",
        Patch(
            REQUESTS,
            'UNPUBLISH, {"b_head": head.id, "b_generation": generation,',
            'UNPUBLISH, {"b_head": head.id, "b_generation": head.generation,',
        ),
        by=f"{G1}generations_never_restart_after_a_delete[sqlite]",
    ),
    mutant(
        "wake_before_commit",
        "G4",
        Patch(
            "engine/engine.py",
            "        answer = requests.request(self.db, checked,",
            "        wake.wake_lanes(self.parts.sender, {checked.lane: 1})\n"
            "        answer = requests.request(self.db, checked,",
        ),
        by=f"{G4}nobody_is_woken_before_the_work_can_be_seen[sqlite]",
    ),
    mutant(
        "lost_answer_claims_again",
        "G4: after a lost COMMIT answer the claim is not recognised",
        Patch(
            CLAIMS,
            'if tx.again and (mine := tx.one(MINE_BY_TOKEN, {"token": token})) is not None:',
            'if False and (mine := tx.one(MINE_BY_TOKEN, {"token": token})) is not None:',
        ),
        by=f"{G4}a_lost_answer_to_any_commit_has_the_effect_of_one_commit[sqlite]",
    ),
    mutant(
        "refusal_not_noted",
        "G6",
        Patch(
            REQUESTS,
            "    refusals.note(tx, ask, head, verdict, run_id)\n"
            "    return RequestResult(\n        verdict.disposition,",
            "    return RequestResult(\n        verdict.disposition,",
        ),
        by=f"{G6}every_one_of_many_duplicates_at_once_is_in_the_journal[sqlite]",
    ),
)
