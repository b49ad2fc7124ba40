"""Somebody's application with paid calls: a guard, and tasks that run in the thread that calls them."""

from collections.abc import Callable
from typing import Any

from celery import Celery
from sqlalchemy import select

from holdfast import Guard
from holdfast.guard import subjects
from holdfast.store.base.database import Database
from holdfast.store.base.schema import orders
from holdfast.store.money import billing

ORDERS = select(orders.c.state, orders.c.sends).order_by(orders.c.created_at, orders.c.id)


class PayingApp:
    """An application whose tasks run at once, in the thread that calls them."""

    def __init__(self, url: str, **options: Any) -> None:
        self.celery = Celery("paying", set_as_current=False)
        self.celery.conf.update(task_always_eager=True, task_store_eager_result=False)
        self.guard = Guard(self.celery, database=url, sweep=False, **options)

    @property
    def db(self) -> Database:
        """The database of the guard."""
        return self.guard.runtime().db

    def in_run(self, body: Callable[[], Any], run: str = "run") -> Any:
        """What the body answers as a guarded task; with the same name it is the same run again."""
        return self.task(body).apply(task_id=run).get()

    def task(self, body: Callable[[], Any]) -> Any:
        """The body as a guarded task."""
        return self.guard.task(name=f"task-{id(body)}")(body)

    def run_id(self, task: Any, celery_id: str) -> str:
        """The id of a run."""
        return subjects.run_id(celery_id, task.name)

    def orders(self) -> list[tuple[str, int]]:
        """State and number of sends of each order, in the order in which they were made."""
        rows = self.db.read(lambda tx: tx.all(ORDERS))
        return [(row.state, row.sends) for row in rows]

    def bill(self, tenant: str = "default") -> billing.BillRow:
        """The sums of the bill of a tenant."""
        return billing.bill(self.db, tenant).sums

    def close(self) -> None:
        """The database is closed."""
        self.guard.close()
