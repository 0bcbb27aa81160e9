"""Which elements differ, in what pattern, and by how many bits."""

from ui import frame
from ui.cards import adaptation, cut, detail, distributions, notes, tensor

with frame.page("Tensor") as view:
    subject = tensor.find(view)
    tensor.head(view, subject)
    notes.button(view, subject.pair.reference.operator or subject.pair.reference.id)
    tensor.neighbours(view, subject)
    adaptation.draw(subject.pair)
    if subject.pair.stats is None:
        tensor.problem(subject)
    else:
        cut.draw(view, subject)
        distributions.draw(view, subject)
        detail.draw(view, subject)
        distributions.elements(view, subject)
    frame.foot(frame.show(view, tensor=subject.pair.reference.id))
