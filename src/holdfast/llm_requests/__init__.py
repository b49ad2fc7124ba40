"""Requests of client libraries in the providers' own formats: what the transport and the gateway share."""
