"""Paid services behind one contract: `base` fixes it, `wire` sends, `statuses` judges, `openai` speaks."""
