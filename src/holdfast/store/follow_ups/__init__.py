"""What happens when a document is ready or a run ends: actions, their runs, and webhook deliveries."""
