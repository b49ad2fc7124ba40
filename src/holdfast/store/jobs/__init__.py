"""Jobs: runs that somebody asked for over the API, what they read and what they leave behind."""
