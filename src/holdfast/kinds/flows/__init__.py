"""The user's own list of steps: its language, and how it is carried out inside the kind `index`."""
