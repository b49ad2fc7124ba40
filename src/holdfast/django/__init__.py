"""Holdfast in a Django project: `INSTALLED_APPS += ["holdfast.django"]` (docs/how-to/use-with-django.md)."""
