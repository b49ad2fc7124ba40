"""The history of the tables: a baseline, and one file for each later change."""
