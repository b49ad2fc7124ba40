"""The tables of the first release, room by room. Later changes are migrations."""
