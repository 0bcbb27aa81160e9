"""Precision Explorer in the browser: `streamlit run app.py`, or `python app.py`.

One file, three lives: the server's launcher, the script that Streamlit runs for every view, and,
imported again by each worker process, nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [root for root in [str(Path(__file__).resolve().parent)] if root not in sys.path]

if __name__ != "__mp_main__":
    import streamlit as st
    from streamlit import runtime

    if __name__ == "__main__" and runtime.exists():
        from ui import navigation

        navigation.run()
    else:
        from api import server

        app = st.App(__file__, **server.parts(__file__))
        if __name__ == "__main__":
            app.run()
