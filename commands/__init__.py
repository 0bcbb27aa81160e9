"""Commands of the shell that are more than one comparison; `cli.py` lists them all."""
