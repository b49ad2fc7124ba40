"""The tables of the first release, room by room, as they were then: later changes are migrations."""
