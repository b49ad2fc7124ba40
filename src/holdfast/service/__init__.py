"""Use cases of API, web UI and CLI. Each returns a frozen record or raises a HoldfastError."""
