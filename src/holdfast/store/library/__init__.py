"""Collections and documents: how they are stored, listed, moved, imported and checked."""
