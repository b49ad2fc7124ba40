"""Settings: one frozen object, and the only reader of the environment. `load()` is the way in."""

from holdfast.settings.load import FILE, PREFIX, Settings, SettingsError, choose, load

__all__ = ["FILE", "PREFIX", "Settings", "SettingsError", "choose", "load"]
