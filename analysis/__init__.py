"""Everything that is true of two runs: pairing, comparison, verdict, reductions for the screen."""
