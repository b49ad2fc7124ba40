"""The project; its Celery application is loaded with it, as Celery's documentation asks for."""

from shop.celery import app

__all__ = ["app"]
