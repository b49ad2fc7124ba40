"""URL schemes that a setting accepts."""

from pydantic import SecretStr


def checked(url: SecretStr, schemes: tuple[str, ...]) -> SecretStr:
    """The URL, if it has one of these schemes; otherwise ValueError, which lists them."""
    if url.get_secret_value().partition("://")[0] not in schemes:
        raise ValueError(f"should start with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    return url
