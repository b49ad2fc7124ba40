"""The web application: a report and the run that writes it, in one transaction."""

from flask import Flask, Response, jsonify
from reports import Report, build, engine
from sqlalchemy.orm import Session

site = Flask(__name__)


@site.post("/reports/<title>")
def create(title: str) -> tuple[Response, int]:
    """A new report; it is written in the background."""
    with Session(engine) as session, session.begin():
        report = Report(title=title)
        session.add(report)
        session.flush()
        requested = build.request(report.id, using=session)
        return jsonify(id=report.id, disposition=requested.disposition), 202


@site.get("/reports/<int:report_id>")
def read(report_id: int) -> Response:
    """The report as it is."""
    with Session(engine) as session:
        report = session.get_one(Report, report_id)
        return jsonify(title=report.title, text=report.text)
