"""The workspace on disk: runs, comparisons and jobs. The only code that writes there."""
