"""The nouns of the product and its errors: no I/O, no page, no library but NumPy."""
