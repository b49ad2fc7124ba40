"""How the tables came to be: a baseline, and one file for each change after it."""
