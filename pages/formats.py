"""What every tensor of a run would lose in narrower formats, and which format would do."""

from ui import frame
from ui.cards import formats

with frame.page("Formats") as view:
    made = formats.choose(view)
    formats.heat(view, made)
    formats.recommendations(made)
    formats.quantised(made)
    frame.foot(frame.command("formats", view.comparison.id, side=made.side))
