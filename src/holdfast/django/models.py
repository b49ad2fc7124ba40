"""Some tables of Holdfast as models of Django, to be read: nothing but Holdfast may write them."""

from django.db import models

from holdfast.django.fields import DollarsField, TimeField


class ReadOnlyError(TypeError):
    """A row of Holdfast was to be written by a model."""

    def __init__(self) -> None:
        super().__init__(
            "rows of Holdfast are written by Holdfast alone; request, cancel or retry a run instead"
        )


class ReadOnlyModel(models.Model):
    """A model whose rows cannot be saved or deleted."""

    class Meta:  # noqa: D106 - Django reads it
        abstract = True

    def save(self, *_: object, **__: object) -> None:
        """Refused."""
        raise ReadOnlyError

    def delete(self, *_: object, **__: object) -> None:
        """Refused."""
        raise ReadOnlyError


class RunRow(ReadOnlyModel):
    """One generation of the work on a subject: a call of a guarded task."""

    id = models.TextField(primary_key=True)
    tenant = models.TextField()
    kind = models.TextField("task")
    subject = models.TextField()
    generation = models.BigIntegerField()
    status = models.TextField()
    reason = models.TextField()
    actor = models.TextField("requested by")
    queued_at = TimeField()
    started_at = TimeField(null=True)
    finished_at = TimeField(null=True)
    error_code = models.TextField(null=True)  # noqa: DJ001 - NULL is what is there
    error_message = models.TextField(null=True)  # noqa: DJ001

    class Meta:  # noqa: D106 - Django reads it
        managed = False
        db_table = "holdfast_runs"
        ordering = ("-queued_at",)
        verbose_name = "run"

    def __str__(self) -> str:
        return f"{self.kind} {self.subject} ({self.generation})"


class OrderRow(ReadOnlyModel):
    """One exchange with a paid service."""

    id = models.TextField(primary_key=True)
    tenant = models.TextField()
    provider = models.TextField()
    endpoint = models.TextField()
    model = models.TextField()
    state = models.TextField()
    run = models.ForeignKey(RunRow, models.DO_NOTHING, null=True, db_constraint=False)
    estimate = DollarsField("estimate in dollars")
    sends = models.IntegerField("times sent")
    status_code = models.IntegerField("HTTP status", null=True)
    reason = models.TextField(null=True)  # noqa: DJ001
    created_at = TimeField()
    settled_at = TimeField(null=True)

    class Meta:  # noqa: D106 - Django reads it
        managed = False
        db_table = "holdfast_orders"
        ordering = ("-created_at",)
        verbose_name = "order"

    def __str__(self) -> str:
        return f"{self.provider} {self.model} {self.id}"


class ChargeRow(ReadOnlyModel):
    """A line of the bill: what a provider took for an order, or may have taken."""

    id = models.BigAutoField(primary_key=True)
    order = models.ForeignKey(OrderRow, models.DO_NOTHING)
    tenant = models.TextField()
    run = models.ForeignKey(RunRow, models.DO_NOTHING, null=True, db_constraint=False)
    model = models.TextField()
    type = models.TextField(db_column="sort")
    cleared = models.BooleanField("not charged after all")
    tokens = models.BigIntegerField()
    amount = DollarsField("dollars")
    at = TimeField()

    class Meta:  # noqa: D106 - Django reads it
        managed = False
        db_table = "holdfast_charges"
        ordering = ("-id",)
        verbose_name = "line of the bill"
        verbose_name_plural = "bill"

    def __str__(self) -> str:
        return f"{self.model}: {self.amount} USD ({self.type})"
