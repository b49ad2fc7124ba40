"""An order, and its invoice once that is written."""

from django.db import models


class Order(models.Model):
    """What a customer has ordered."""

    customer = models.TextField()
    invoice = models.TextField(default="")

    def __str__(self) -> str:
        return f"order {self.pk} of {self.customer}"
