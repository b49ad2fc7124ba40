"""Tools of the checkout: run as `python -m scripts.NAME` from its root, standard library only unless said."""
