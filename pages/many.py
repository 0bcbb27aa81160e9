"""Which of several candidates part from one reference, and where each of them does."""

from ui import frame
from ui.cards import many, steps

with frame.page("Many runs") as view:
    made = many.gather(view)
    many.listed(made)
    many.by_layer(view, made)
    many.three_way(made)
    many.along(view, made)
    steps.draw(view)
    frame.foot(frame.show(view))
