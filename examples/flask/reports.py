"""The task of the application, and its table; used by the API and by the worker."""

from celery import Celery
from sqlalchemy import create_engine, update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from holdfast import Guard

URL = "sqlite:///app.db"
app = Celery("reports")
app.config_from_object("celeryconfig")
guard = Guard(app, database=URL)
engine = create_engine(URL)


class Base(DeclarativeBase):
    """The tables of the application."""


class Report(Base):
    """A report that somebody has asked for."""

    __tablename__ = "reports"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    text: Mapped[str] = mapped_column(default="")


@guard.task("report:{report_id}")
def build(report_id: int) -> None:
    """The report has its text, if this execution may still write."""
    with Session(engine) as session, session.begin():
        session.execute(update(Report).where(Report.id == report_id).values(text="All is well."))
        guard.fence(session)


def create_tables() -> None:
    """The tables of Holdfast and of the application are there."""
    guard.create_tables()
    Base.metadata.create_all(engine)
