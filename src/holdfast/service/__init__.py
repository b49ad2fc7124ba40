"""Use cases, shared by API, page and command line. Each answers a frozen record or raises a HoldfastError."""
