"""Collections and documents: what people gave us, how it is listed, moved, imported and checked."""
