"""What the kinds that ask language models cost, and what an edit makes them pay again."""
