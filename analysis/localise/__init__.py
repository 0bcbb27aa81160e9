"""Where a difference begins: setup, suspects, the first of them, and how sure that is."""
