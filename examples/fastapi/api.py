"""The API: a report and the run that writes it, in one transaction of an async session."""

from typing import Any

from fastapi import FastAPI, HTTPException
from reports import Report, build
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

api = FastAPI()
engine = create_async_engine("sqlite+aiosqlite:///app.db")


@api.post("/reports", status_code=202)
async def create(title: str) -> dict[str, Any]:
    """A new report; it is written in the background."""
    async with AsyncSession(engine, expire_on_commit=False) as session, session.begin():
        report = Report(title=title)
        session.add(report)
        await session.flush()
        requested = await session.run_sync(lambda sync: build.request(report.id, using=sync))
    return {"id": report.id, "disposition": requested.disposition}


@api.get("/reports/{report_id}")
async def read(report_id: int) -> dict[str, Any]:
    """The report as it is."""
    async with AsyncSession(engine) as session:
        report = await session.get(Report, report_id)
        if report is None:
            raise HTTPException(404)
        return {"title": report.title, "text": report.text}
