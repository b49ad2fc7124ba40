"""The HTTP API: plain routes over the service layer. It accepts requests and does no work itself."""
