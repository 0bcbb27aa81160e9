"""Parts of the pages Runs and Overview: each takes values and draws one thing."""
