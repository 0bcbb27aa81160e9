"""Reading HDF5 files nobody vouches for: opened safely, walked within limits, values past the library.

The dialects beside this package say what the names mean; everything about bytes is here.
"""
