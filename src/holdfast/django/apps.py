"""The Django app: its tables come with `manage.py migrate`, and admin shows them."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from holdfast.django import tables


class HoldfastConfig(AppConfig):
    """Holdfast as an app of a Django project."""

    name = "holdfast.django"
    label = "holdfast"
    verbose_name = "Holdfast"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """From now on `migrate` also brings the tables of Holdfast to this release."""
        post_migrate.connect(tables.after_migrate, sender=self)
