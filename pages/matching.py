"""Which tensor was taken for which, how surely, and what to do where that is wrong."""

from ui import frame
from ui.cards import mapping

with frame.page("Matching") as view:
    mapping.answer(view)
    edited = mapping.table(view)
    mapping.actions(view, edited)
    frame.foot(frame.show(view))
