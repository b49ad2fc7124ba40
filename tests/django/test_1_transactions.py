"""A request in Django's transaction takes effect with it; a fenced write if the execution may still write."""

import contextlib

import pytest
from django.db import IntegrityError, connection, transaction

from holdfast import BadRequestError
from holdfast.store.guarded import messages


def rows(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def requested(application, task, number):
    """An order and the request for its report, in one transaction of Django."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO orders (id) VALUES (%s)", [number])
    return task.request(number, using=connection)


@pytest.fixture
def build(application):
    @application.guard.task("report:{order}", name="build", shared=False)
    def build(order):
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("UPDATE orders SET state = 'built' WHERE id = %s", [order])
            application.guard.fence(connection)
        connection.close()
        return order

    return build


@pytest.mark.g4
def test_the_run_is_there_if_the_order_is(application, build):
    """Once the transaction has committed, the sweep publishes the message and a worker carries it out."""
    with transaction.atomic():
        answer = requested(application, build, 1)
        assert answer.disposition == "accepted"
        assert messages.of_run(application.guard.runtime().db, answer.run_id) is None  # not committed yet
    with application.worker():
        application.sweep()
        assert answer.result.get(timeout=20) == 1
    assert rows("SELECT id, state FROM orders") == [(1, "built")]


@pytest.mark.g4
def test_the_run_is_not_there_if_the_order_is_not(application, build):
    """Rolled back as a whole or to a savepoint, a transaction leaves neither the order nor its run."""
    with contextlib.suppress(ZeroDivisionError), transaction.atomic():
        requested(application, build, 1)
        raise ZeroDivisionError
    with transaction.atomic():
        with contextlib.suppress(ZeroDivisionError), transaction.atomic():
            requested(application, build, 2)
            raise ZeroDivisionError
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO orders (id) VALUES (3)")
    assert rows("SELECT id FROM orders") == [(3,)]
    assert rows("SELECT count(*) FROM holdfast_runs") == [(0,)]
    assert rows("SELECT count(*) FROM holdfast_messages") == [(0,)]


def test_the_second_request_is_a_duplicate(application, build):
    """In another transaction, or in the same one, the same work is not requested twice."""
    with transaction.atomic():
        first = requested(application, build, 1)
        second = build.request(1, using=connection)
    third = build.request(1)
    assert [each.disposition for each in (first, second, third)] == ["accepted", "duplicate", "duplicate"]
    assert first.result.id == third.result.id


def test_the_transaction_stays_djangos(application, build):
    """A request ends nothing: what came before and after it is one transaction."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO orders (id) VALUES (1)")
        build.request(1, using="default")
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO orders (id) VALUES (2)")
        transaction.set_rollback(True)
    assert rows("SELECT count(*) FROM orders") == [(0,)]
    with contextlib.suppress(IntegrityError), transaction.atomic():
        requested(application, build, 1)
        requested(application, build, 1)
        pytest.fail("the same order twice")
    assert rows("SELECT count(*) FROM holdfast_runs") == [(0,)]


def test_without_a_transaction_it_is_refused(application, build):
    """Outside `atomic` each statement would commit alone, so the request is refused in one line."""
    with pytest.raises(BadRequestError, match=r"call this inside `with transaction.atomic\(\):`"):
        build.request(1, using=connection)
    assert rows("SELECT count(*) FROM holdfast_runs") == [(0,)]


@pytest.mark.g2
def test_a_fenced_execution_writes_nothing(application):
    """An execution whose run was superseded before its commit leaves Django's table as it was."""
    states = []

    @application.guard.task("report:{order}", name="late", shared=False)
    def late(order, state):
        if state == "older":
            late.request(order, "newer")
        try:
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("UPDATE orders SET state = %s WHERE id = %s", [state, order])
                application.guard.fence(connection)
        finally:
            states.append(rows("SELECT state FROM orders"))
            connection.close()

    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO orders (id) VALUES (1)")
    with application.worker(threads=1):
        late.delay(1, "older")
        application.sweep_until(lambda: len(states) == 2)
    assert states == [[("new",)], [("newer",)]]
    statuses = "SELECT status FROM holdfast_runs ORDER BY generation"
    application.sweep_until(lambda: rows(statuses) == [("superseded",), ("success",)])


@pytest.mark.g2
def test_an_order_and_the_end_of_the_run_are_one_commit(application):
    """In Django's transaction: rolled back both are undone, committed no later delivery inserts anything."""

    @application.guard.task("report:{order}", name="once", shared=False)
    def once(order, fails):
        try:
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("INSERT INTO orders (id) VALUES (%s)", [order])
                result = application.guard.finish(connection, f"order {order}")
                if fails:
                    raise ZeroDivisionError
        finally:
            connection.close()
        return result

    with application.worker(threads=1):
        with pytest.raises(ZeroDivisionError):
            once.delay(1, True).get(timeout=20, interval=0.02)
        requested = once.request(1, False)
        assert requested.result.get(timeout=20, interval=0.02) == "order 1"
        application.deliver_again(requested.run_id)
        assert once.delay(2, False).get(timeout=20, interval=0.02) == "order 2"
    assert rows("SELECT id FROM orders ORDER BY id") == [(1,), (2,)]
    statuses = rows("SELECT status FROM holdfast_runs ORDER BY status")
    assert statuses == [("failed",), ("success",), ("success",)]
