"""Every page, in one list, for the face that mounts them."""

from fastapi import APIRouter

from holdfast.web import (
    actions,
    collections,
    documents,
    home,
    jobs,
    money,
    operations,
    runs,
    searching,
    signing,
)


def routers() -> list[APIRouter]:
    """The routes of all pages."""
    modules = (home, collections, actions, documents, searching, jobs, runs, money, operations, signing)
    return [module.router for module in modules]
