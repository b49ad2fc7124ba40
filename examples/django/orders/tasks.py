"""The guarded task that writes invoices."""

from django.db import connection, transaction
from orders.models import Order
from shop.celery import guard


@guard.task("order:{order_id}")
def invoice(order_id: int) -> None:
    """The order has its invoice, if this execution may still write."""
    order = Order.objects.get(pk=order_id)
    with transaction.atomic():
        order.invoice = f"Invoice {order.pk} for {order.customer}"
        order.save(update_fields=["invoice"])
        guard.fence(connection)
