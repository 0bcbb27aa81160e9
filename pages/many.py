"""Which of several candidates part from one reference, and where each of them does."""

from ui import frame
from ui.cards import many

with frame.page("Many runs") as view:
    made = many.gather(view)
    many.listed(made)
    many.by_layer(view, made)
    many.three_way(made)
    many.along(view, made)
    frame.foot(frame.show(view))
