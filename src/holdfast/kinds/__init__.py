"""The kinds of work that come with Holdfast: how each is planned, run and published."""
