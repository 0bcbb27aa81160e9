"""What this is for, to someone who has never recorded a dump."""

from __future__ import annotations

import html

import streamlit as st

from charts.names import for_html
from language import _, say, told
from ui import tour

_RECORD = say("""from precision_recorder import record

with record(model, "dumps/gpu_bf16"):      # on the machine you trust
    model(**batch)

with record(model, "dumps/xpu_bf16"):      # the same batch on the other one
    model(**batch)
""")

_WHAT = say(
    "Drop the dump folder of each run: the one you trust on the left, the one under test on the "
    "right. Files are streamed, and an interrupted upload resumes."
)


def draw() -> None:
    """The page's question, what to do about it, how a dump is made, and the tour."""
    question = _("Where do two runs of one model part, and is it rounding or a fault?")
    said = told(_WHAT)
    with st.container(horizontal=True, vertical_alignment="bottom", key="guide"):
        st.html(
            f'<div class="px-answer"><h1>{for_html(question)}</h1>'
            f'<p class="px-muted">{for_html(said, 400)}</p></div>'
        )
        href, word = html.escape(tour.start()), for_html(_("Five-minute tour"))
        st.html(f'<a class="px-go px-button" href="{href}">{word}</a>', width="content")
        with st.popover(_("How to record a dump"), key="how-to"):
            _how_to()


def _how_to() -> None:
    st.markdown(
        _(
            "A dump is a folder of HDF5 files that holds what every module of a model was given "
            "and gave back, in the order it ran. Record the same batch on both machines:"
        )
    )
    st.code(told(_RECORD), language="python")
    st.markdown(
        _(
            "`pip install ./recorder` brings the recorder; it needs NumPy and h5py only. Around "
            "a training step it records gradients too. Dumps of msprobe (task `tensor`) and "
            "torch_xray work as well, and so do other HDF5 files, safetensors and trees of "
            "`.npy` or `.npz`."
        )
    )
