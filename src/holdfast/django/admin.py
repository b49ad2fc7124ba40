"""Admin: runs, orders and the bill, to be read."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet, Sum

from holdfast.django.fields import NANO
from holdfast.django.models import ChargeRow, OrderRow, RunRow
from holdfast.service import formatting


class ReadOnlyAdmin(admin.ModelAdmin):
    """Shows rows, and changes none."""

    # A second count of the whole table beside that of the filtered one.
    show_full_result_count = False

    def has_add_permission(self, *_: Any) -> bool:
        """Nobody adds rows here."""
        return False

    def has_change_permission(self, *_: Any) -> bool:
        """Nobody changes rows here."""
        return False

    def has_delete_permission(self, *_: Any) -> bool:
        """Nobody deletes rows here."""
        return False


@admin.register(RunRow)
class RunAdmin(ReadOnlyAdmin):
    """Runs of guarded tasks, newest first."""

    list_display = ("subject", "kind", "status", "generation", "queued_at", "finished_at", "error_message")
    list_filter = ("status", "kind", "tenant")
    search_fields = ("=id", "^subject")


@admin.register(OrderRow)
class OrderAdmin(ReadOnlyAdmin):
    """Orders, newest first."""

    list_display = ("id", "provider", "model", "state", "estimate", "sends", "status_code", "created_at")
    list_filter = ("state", "model", "tenant")
    search_fields = ("=id", "=run__id")


@admin.register(ChargeRow)
class BillAdmin(ReadOnlyAdmin):
    """The bill line by line; its title says what the lines that are shown add up to."""

    list_display = ("at", "model", "type", "amount", "tokens", "run", "tenant")
    list_filter = ("type", "model", "tenant")
    search_fields = ("=run__id", "=order__id")
    list_select_related = ("run",)

    def changelist_view(self, request: Any, extra_context: dict[str, Any] | None = None) -> Any:
        """The list, with its sums in the title."""
        response = super().changelist_view(request, extra_context)
        changelist = (getattr(response, "context_data", None) or {}).get("cl")
        if changelist is not None:
            response.context_data["title"] = _title(changelist.queryset)
        return response


def _title(lines: QuerySet[Any]) -> str:
    sums = {
        row["type"]: int(row["dollars"] * NANO)
        for row in lines.order_by().filter(cleared=False).values("type").annotate(dollars=Sum("amount"))
    }
    second, in_doubt = sums.get("second", 0), sums.get("in_doubt", 0)
    total = formatting.money(sum(sums.values()))
    return (
        f"{total} in all, of which charged twice {formatting.money(second)} "
        f"and in doubt {formatting.money(in_doubt)}"
    )
