"""How the lines of a run's log count things."""


def many(number: int, word: str, plural: str | None = None) -> str:
    """`1 page`, `2 pages`, `1,000 pages`."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {plural or f'{word}s'}"
