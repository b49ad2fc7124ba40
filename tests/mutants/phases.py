"""Breaks of the phases of a run (G2 to G4)."""

from tests.mutants.catalogue import DECIDE, DUTIES, PHASES, TASKS, Mutant, Patch, mutant

RACES = "tests/races/test_phases.py::test_"
STORE = "tests/conformance/test_store_phases.py::test_"
STORIES = "tests/fundamentals/test_engine_7_phases.py::test_"

FENCED = """    if isinstance(held, Fenced):
        return _fenced(tx, Verb.FINISH, claim, held)
"""

IN_PHASES: tuple[Mutant, ...] = (
    mutant(
        "publish_though_a_phase_is_left",
        "G3",
        Patch(
            DECIDE,
            "    return Continuation.NEXT_PHASE if goes_on else Continuation.PUBLISH\n",
            "    return Continuation.PUBLISH\n",
        ),
        by=f"{RACES}of_many_last_finishers_at_once_one_begins_the_next_phase[sqlite]",
    ),
    mutant(
        "every_finisher_begins_the_next_phase",
        "G3",
        Patch(DECIDE, "    if others_open:\n", "    if others_open and not goes_on:\n"),
        by=f"{RACES}of_many_last_finishers_at_once_one_begins_the_next_phase[sqlite]",
    ),
    mutant(
        "next_phase_is_not_fenced",
        "G2",
        Patch(
            TASKS,
            FENCED,
            "    if isinstance(held, Fenced) and goes_on:\n"
            "        late = phases.next_values(claim, claim.ordinal, 0.0)\n"
            "        tx.together(FINISHED_PHASE, _done_values(claim, spent, staged, result) | late\n"
            '            | {"b_run": claim.run_id} | journal.of_claim(Verb.FINISH, "late", claim))\n'
            "        return Landed(goes_on=True)\n" + FENCED,
        ),
        by=f"{RACES}a_last_finisher_that_was_replaced_begins_no_phase[sqlite]",
    ),
    mutant(
        "sweep_publishes_between_phases",
        "G3",
        Patch(DUTIES, "            if goes_on(run.kind):\n", "            if False:\n"),
        by=f"{STORE}a_stranded_run_whose_kind_goes_on_is_planned_further[sqlite-]",
    ),
    mutant(
        "sweep_publishes_without_the_hook_of_the_kind",
        "G4",
        Patch(
            "engine/kinds.py",
            "kind is None or kind.plan_next is not None or kind.publish is not None",
            "kind is None or kind.plan_next is not None",
        ),
        by="tests/indexing/test_3_endings.py::"
        "test_a_stranded_run_is_published_with_the_facts_of_its_document[sqlite]",
    ),
    mutant(
        "sweep_takes_a_queued_plan_for_none",
        "G4",
        Patch(
            DUTIES,
            "_open_states = [literal(state) for state in sorted(OPEN)]\n",
            "_open_states = [literal(state) for state in sorted(OPEN - {TaskState.QUEUED})]\n",
        ),
        by=f"{RACES}a_sweep_beside_the_last_finisher_changes_nothing[sqlite]",
    ),
    mutant(
        "lost_answer_of_a_phase_is_not_told",
        "G4",
        Patch(TASKS, ", goes_on=row.run_phase > task.phase)", ")"),
        by=f"{STORE}a_lost_connection_changes_nothing_about_the_end_of_a_phase[sqlite-committed]",
    ),
    mutant(
        "earlier_phases_are_read_by_anybody",
        "G2",
        Patch(PHASES, "    return tx.one(MINE, values) is not None\n", "    return bool(values)\n"),
        by=f"{STORIES}a_worker_that_lost_its_task_reads_nothing_of_earlier_phases",
    ),
    mutant(
        "next_phase_wakes_nobody",
        "G4",
        Patch("engine/execute.py", "        if landed.goes_on:\n", "        if False:\n"),
        by=f"{STORIES}whoever_is_idle_is_woken_for_the_next_phase",
    ),
)
