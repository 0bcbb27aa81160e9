"""The vocabulary of the data in words: verdicts, sides, passes, methods, as people read them.

What is kept, linked and written as JSON are the slugs; these are for whoever shows one.
"""

from __future__ import annotations

from collections.abc import Mapping

from language import say

_WORDS: Mapping[str, str] = {
    "reference": say("reference"),
    "candidate": say("candidate"),
    "both": say("both"),
    "unknown": say("unknown"),
    "forward": say("forward"),
    "backward": say("backward"),
    "parameter": say("parameter"),
    "gradient": say("gradient"),
    "update": say("update"),
    "input": say("input"),
    "output": say("output"),
    "value": say("value"),
    "batch": say("batch"),
    "token": say("token"),
    "channel": say("channel"),
    "head": say("head"),
    "step": say("step"),
    "rank": say("rank"),
    "fault": say("fault"),
    "watch": say("watch"),
    "setup": say("setup"),
    "inherited": say("inherited"),
    "rounding": say("rounding"),
    "uncompared": say("uncompared"),
    "exact": say("exact"),
    "normalised": say("normalised"),
    "sequence": say("sequence"),
    "fingerprint": say("fingerprint"),
    "statistics": say("statistics"),
    "mapping": say("mapping"),
    "queued": say("queued"),
    "running": say("running"),
    "done": say("done"),
    "failed": say("failed"),
    "cancelled": say("cancelled"),
    "interrupted": say("interrupted"),
}
_HEADS: Mapping[str, str] = {
    "reference": say("Reference"),
    "candidate": say("Candidate"),
    "both": say("Both sides"),
    "unknown": say("Side open"),
    "fault": say("Fault"),
    "watch": say("Watch"),
    "setup": say("Setup"),
    "inherited": say("Inherited"),
    "rounding": say("Rounding"),
    "uncompared": say("Uncompared"),
    "note": say("Note"),
    "seen": say("Seen"),
    "accepted": say("Accepted"),
}


def word(slug: str) -> str:
    """The word for a slug within a sentence, to be shown by `told`; itself where there is none."""
    return _WORDS.get(slug, slug)


def head(slug: str) -> str:
    """The same where it stands alone or first, capitalised."""
    return _HEADS.get(slug, slug.capitalize())
