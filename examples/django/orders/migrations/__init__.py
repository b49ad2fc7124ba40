"""Migrations of orders."""
