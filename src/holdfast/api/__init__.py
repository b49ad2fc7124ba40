"""The HTTP API: plain routes over the service layer. It takes requests and tells of work; it does none."""
