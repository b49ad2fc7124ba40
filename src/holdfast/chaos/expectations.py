"""What a scenario expects on its way, and the error that says that it was not so."""


class ScenarioFailedError(AssertionError):
    """A scenario could not be played to its end, or a promise was broken; the message says which."""


def expect(condition: object, message: str) -> None:
    """Nothing, when the condition is true; otherwise ScenarioFailedError with the message."""
    if not condition:
        raise ScenarioFailedError(message)
