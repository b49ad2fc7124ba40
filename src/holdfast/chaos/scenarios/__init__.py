"""The scenarios, by what they break."""
