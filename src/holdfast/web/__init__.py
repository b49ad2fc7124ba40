"""The web UI: HTML rendered by the server, with a few small JavaScript modules of our own.

Everything that a page shows is rendered on the server, by one template. When the event stream reports a
change, the browser fetches the affected fragment again and replaces it. Changes go through the API, like any
other client's. Nothing is loaded from other hosts, and there is no build step.
"""
