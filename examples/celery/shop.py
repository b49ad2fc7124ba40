"""A Celery application with one guarded task, a request in a transaction and a fenced write."""

import sys
import time

from celery import Celery
from celery.result import AsyncResult
from sqlalchemy import create_engine, text

from holdfast import Guard

URL = "sqlite:///shop.db"
app = Celery("shop")
app.config_from_object("celeryconfig")
guard = Guard(app, database=URL)
engine = create_engine(URL)


@guard.task("report:{report_id}")
def build(report_id: int, pages: int = 3) -> str:
    """The report is written, page by page, and stored only if this execution may still write."""
    for page in range(pages):
        time.sleep(0.2)
        guard.run().progress(page + 1, pages, unit="pages")
    report = f"report {report_id}: {pages} pages"
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE reports SET text = :text WHERE id = :id"), {"id": report_id, "text": report}
        )
        guard.fence(connection)
    return report


def order(report_id: int) -> AsyncResult:
    """The row of a report and the run that writes it: both are there, or neither."""
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE IF NOT EXISTS reports (id integer PRIMARY KEY, text text)"))
        connection.execute(text("INSERT INTO reports (id) VALUES (:id)"), {"id": report_id})
        return build.request(report_id, using=connection).result


if __name__ == "__main__":
    guard.create_tables()
    print(order(int(sys.argv[1])).get(timeout=60))
