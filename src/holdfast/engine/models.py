"""Which language model a run asks, and what its calls are sent with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.providers import local_llm

OUTPUT_LIMITS = frozenset({"max_tokens", "max_completion_tokens"})


@dataclass(frozen=True, slots=True)
class Model:
    """Which model is asked, and where; frozen into a run's options."""

    provider: str
    name: str
    # What its calls are sent with, besides what the work itself needs; None: what is usual.
    parameters: Mapping[str, object] | None = None
    # Those of the provider's models, by name; "" stands for every other.
    of_models: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def parameters_of(self, name: str) -> Mapping[str, object] | None:
        """What another model of the same provider is sent with."""
        return sent_with(self.of_models, name)

    def sends(self, max_tokens: int) -> dict[str, object]:
        """The parameters of a call whose answer has at most `max_tokens`.

        Of a model with parameters of its own nothing is sent that they leave out. Where they say `true` for
        the limit of an answer, it is that of the work.
        """
        if self.parameters is None:
            return {"temperature": 0, "max_tokens": max_tokens}
        return {
            name: max_tokens if name in OUTPUT_LIMITS and given is True else given
            for name, given in self.parameters.items()
        }

    @property
    def stand_in(self) -> bool:
        """True for the built-in extractive stand-in, which is no language model."""
        return self.provider == local_llm.NAME


def sent_with(table: Mapping[str, Mapping[str, object]], name: str) -> Mapping[str, object] | None:
    """What the model called `name` is sent with; None: what is usual."""
    return table.get(name, table.get(""))
