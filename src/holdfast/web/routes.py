"""All pages, for the application that mounts them."""

from fastapi import APIRouter

from holdfast.web import (
    actions,
    collections,
    documents,
    flows,
    gateway,
    graphs,
    home,
    jobs,
    login,
    mind_maps,
    money,
    operations,
    runs,
    search,
    sources,
    trees,
)


def routers() -> list[APIRouter]:
    """The routes of all pages."""
    first = (home, collections, actions, sources, documents, search, trees, graphs, mind_maps, flows)
    return [module.router for module in (*first, jobs, runs, money, gateway, operations, login)]
