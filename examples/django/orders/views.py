"""Orders over HTTP."""

from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from orders.models import Order
from orders.tasks import invoice


def place(_request: HttpRequest, customer: str) -> JsonResponse:
    """An order, and the run that writes its invoice: both are there, or neither."""
    with transaction.atomic():
        order = Order.objects.create(customer=customer)
        requested = invoice.request(order.pk, using=connection)
    return JsonResponse({"order": order.pk, "disposition": requested.disposition})
