"""Jobs: runs requested over the API, what they read and their results."""
