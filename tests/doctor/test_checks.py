"""The checks are pure. Each is tried on facts in its bad state and in its good one."""

import dataclasses
import random
import typing

import pytest

from holdfast.doctor import catalogue
from holdfast.doctor.facts import (
    AppFacts,
    DatabaseFacts,
    Declared,
    DoctorFacts,
    InstallationFacts,
    MachineFacts,
    QueueFacts,
    RabbitFacts,
    RedisFacts,
    TaskFacts,
)
from holdfast.doctor.findings import FindingState, Severity
from tests.doctor import table


def states(check_id, facts):
    return {each.state for each in catalogue.examine(facts).findings if each.id == check_id}


def test_every_check_is_in_the_table():
    """A check without facts that fail it is not there yet."""
    assert list(table.TABLE) == [check.id for check in catalogue.CHECKS]


@pytest.mark.parametrize("check_id", table.TABLE)
def test_a_check_finds_the_bad_state_and_passes_the_good_one(check_id):
    """The bad state is a problem with a fix, the good one passes; harmless ones have a reason."""
    bad, good, spared = table.TABLE[check_id]
    problems = [each for each in catalogue.examine(bad).of(FindingState.PROBLEM) if each.id == check_id]
    assert problems
    assert all(each.seen and each.why and each.fix for each in problems)
    assert states(check_id, good) == {FindingState.PASSED}
    if spared is not None:
        harmless = [each for each in catalogue.examine(spared).findings if each.id == check_id]
        assert {each.state for each in harmless} == {FindingState.HARMLESS}
        assert all(each.harmless for each in harmless)


def test_checks_are_unique_and_speak():
    """Every check has an id of its own, words, and evidence."""
    assert len({check.id for check in catalogue.CHECKS}) == len(catalogue.CHECKS)
    for check in catalogue.CHECKS:
        assert all((check.title, check.why.endswith("."), check.fix, check.evidence))
        assert (check.examine.__doc__ or "").endswith(".")


def test_the_worst_comes_first():
    """Errors stand before warnings, and warnings before notes."""
    report = catalogue.examine(table.with_task(acks_late=False, time_limit=None))
    ranks = [list(Severity).index(each.severity) for each in report.findings]
    assert ranks == sorted(ranks)


def test_an_application_without_a_problem_passes():
    """A guarded task, sensible settings and a healthy Redis: nothing fails, not even strictly."""
    report = catalogue.examine(table.on_redis(table.GUARDED))
    assert report.of(FindingState.PROBLEM) == []
    assert not report.fails(strict=True)


def test_only_errors_fail_unless_it_is_strict():
    """A warning fails with `strict` alone."""
    report = catalogue.examine(table.guarded(connection_max_retries=100))
    assert [each.id for each in report.of(FindingState.PROBLEM)] == ["C15"]
    assert (report.fails(strict=False), report.fails(strict=True)) == (False, True)


def test_a_problem_that_is_accepted_is_listed_apart():
    """An ignored check fails nothing, and is not forgotten."""
    report = catalogue.examine(table.with_task(), ignore={"C1"})
    assert "C1" not in {each.id for each in report.of(FindingState.PROBLEM)}
    assert [each.id for each in report.ignored] == ["C1"]


def test_what_a_person_says_of_tasks_counts():
    """A task that may run twice is no problem when acknowledged late, and one that may be lost when not."""
    declared = Declared(may_repeat=("shop.*",), may_be_lost=("shop.*",))
    late = dataclasses.replace(table.with_task(), declared=declared)
    early = dataclasses.replace(table.with_task(acks_late=False), declared=declared)
    assert states("C1", late) == states("C2", early) == {FindingState.PASSED}


def test_a_mixed_application_names_the_tasks_that_are_not_guarded():
    """The condition hurts the plain task, and the finding says that the guarded one is spared."""
    plain, spared = dataclasses.replace(table.LATE, name="shop.mail"), table.GUARDED
    report = catalogue.examine(table.facts(dataclasses.replace(table.SAFE, tasks=(plain, spared))))
    [finding] = [each for each in report.findings if each.id == "C1"]
    assert finding.state is FindingState.PROBLEM
    assert "shop.mail" in finding.seen
    assert "harmless for 1 task that Holdfast guards" in finding.seen


@pytest.mark.parametrize(
    ("version", "limit", "state"),
    [
        ("3.8.14", 7200.0, FindingState.PASSED),
        ("3.8.15", 1000.0, FindingState.PROBLEM),
        ("3.8.17", 1000.0, FindingState.PASSED),
        ("3.8.17", 1800.0, FindingState.PROBLEM),
        ("4.2.0", 1800.0, FindingState.PROBLEM),
        ("4.3.0", 1800.0, FindingState.PASSED),
    ],
)
def test_the_consumer_timeout_depends_on_the_release(version, limit, state):
    """None before 3.8.15, then 15 minutes, then 30; from 4.3 on it does not apply to classic queues."""
    task = dataclasses.replace(table.LATE, time_limit=limit)
    assert states("Q1", table.on_rabbit(task, RabbitFacts(table.RABBIT, version=version))) == {state}


def test_messages_that_wait_in_a_worker_count_toward_the_timeout():
    """Four messages of ten minutes each are held for 40 minutes by one process, which Redis does not wait."""
    facts = table.of(prefetch_multiplier=4, visibility_timeout=1800.0)
    [finding] = [each for each in catalogue.examine(facts).findings if each.id == "C8"]
    assert finding.state is FindingState.PROBLEM
    assert "40 min" in finding.seen
    assert states("C8", table.of(prefetch_multiplier=2, visibility_timeout=1800.0)) == {FindingState.PASSED}


def test_a_server_that_does_not_answer_is_not_passed():
    """Its checks are not known, and the report names it."""
    facts = table.facts(table.SAFE, redis=(RedisFacts(table.REDIS, error="it does not answer: timed out"),))
    report = catalogue.examine(facts)
    assert {each.state for each in report.findings if each.id in {"R5", "R7", "R14"}} == {
        FindingState.UNKNOWN
    }
    assert report.unreachable == ("redis://redis.internal:6379/0: it does not answer: timed out",)


def test_no_facts_break_a_check():
    """Whatever the facts are, every check has an answer, and only what is shown with a fix has one."""
    for seed in range(400):
        chance = random.Random(seed)
        app = AppFacts(
            "app",
            broker=chance.choice([table.REDIS, table.RABBIT, table.SQLITE]),
            result_backend=chance.choice([None, table.REDIS, table.POSTGRES]),
            tasks=(TaskFacts("task", **drawn(TaskFacts, chance)),),
            queues=(QueueFacts("celery", type=chance.choice(["classic", "quorum"])),),
            **drawn(AppFacts, chance),
        )
        facts = DoctorFacts(
            apps=(app,),
            redis=(RedisFacts(table.REDIS, **drawn(RedisFacts, chance)),),
            rabbitmq=(RabbitFacts(table.RABBIT, **drawn(RabbitFacts, chance)),),
            databases=(DatabaseFacts(table.POSTGRES, **drawn(DatabaseFacts, chance)),),
            installation=InstallationFacts(**drawn(InstallationFacts, chance)),
            machine=MachineFacts(**drawn(MachineFacts, chance)),
            declared=Declared(**drawn(Declared, chance)),
            versions=chance.choice([table.OLD, table.CURRENT, {}]),
        )
        for finding in catalogue.examine(facts).findings:
            assert finding.seen, (seed, finding)
            assert bool(finding.fix) == (finding.state in {FindingState.PROBLEM, FindingState.HARMLESS}), (
                seed,
                finding,
            )


def drawn(record, chance):
    """A value for each simple field of a record, left out now and then."""
    values = {
        bool: lambda: chance.random() < 0.5,
        int: lambda: chance.choice([0, 1, 5, 10**6]),
        float: lambda: chance.choice([0.0, 0.5, 30.0, 4000.0, 10.0**6]),
        str: lambda: chance.choice(["4.3.1", "off", "solo", "celery inspect ping"]),
        type(None): lambda: None,
    }
    hints = typing.get_type_hints(record)
    chosen = {}
    for field in dataclasses.fields(record):
        kinds = [
            kind for kind in typing.get_args(hints[field.name]) or (hints[field.name],) if kind in values
        ]
        if kinds and field.name not in {"name", "result_backend", "lock_server"} and chance.random() < 0.8:
            chosen[field.name] = values[chance.choice(kinds)]()
    return chosen
