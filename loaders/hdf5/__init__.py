"""Reading HDF5 files nobody vouches for: opened safely, walked within limits.

Values are read past the library wherever possible. The dialects beside this package say what the
names mean; everything about bytes is here.
"""
