"""The Celery application, and the guard of its tasks."""

import os

from celery import Celery

from holdfast import Guard

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
guard = Guard(app, django="default")
