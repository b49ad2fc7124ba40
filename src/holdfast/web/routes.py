"""All pages, for the application that mounts them."""

from fastapi import APIRouter

from holdfast.web import (
    actions,
    collections,
    documents,
    home,
    jobs,
    login,
    money,
    operations,
    runs,
    search,
    sources,
)


def routers() -> list[APIRouter]:
    """The routes of all pages."""
    modules = (home, collections, actions, sources, documents, search, jobs, runs, money, operations, login)
    return [module.router for module in modules]
