"""The page for the people who run this: HTML from the server, small modules of our own in the browser.

Everything that a page shows is rendered here, once: the browser fetches the same part again when the event
stream says that something has changed, and lays it over what is there. What changes something goes through
the API, like anybody's request. Nothing is loaded from elsewhere, and there is no build step.
"""
