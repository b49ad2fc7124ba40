"""Columns of Holdfast as Python values: seconds since 1970 as times, nano-dollars as dollars."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.db import models

NANO = 1_000_000_000


class TimeField(models.FloatField):
    """A time, in UTC."""

    def from_db_value(self, value: float | None, *_: Any) -> datetime | None:
        """The time of so many seconds since 1970."""
        return None if value is None else datetime.fromtimestamp(value, UTC)

    def get_prep_value(self, value: Any) -> Any:
        """The seconds of a time, for conditions."""
        return value.timestamp() if isinstance(value, datetime) else super().get_prep_value(value)


class DollarsField(models.BigIntegerField):
    """An amount of money, in dollars."""

    def from_db_value(self, value: int | None, *_: Any) -> Decimal | None:
        """The dollars of so many nano-dollars."""
        return None if value is None else Decimal(value) / NANO

    def get_prep_value(self, value: Any) -> Any:
        """The nano-dollars of an amount, for conditions."""
        return int(value * NANO) if isinstance(value, Decimal) else super().get_prep_value(value)
