"""What is said to people, in their language.

Two ways to say something. Where it is shown at once, `_("Open")` gives the text in the reader's
language. Where it is said in one place and shown in another (an error raised in a worker, a
sentence kept with a comparison), `say("{name} is empty.", name=name)` gives a `Said`: the English
text, which remembers how it was made, so that `told(text)` can say it again in the reader's
language. Data, the command line and JSON keep the English.

The messages are the keys of the catalogue (`language/locales`); `python -m language.collect` brings
it up to date with the code.
"""

from language.catalogue import LANGUAGES, current, use
from language.dates import day
from language.said import (
    Said,
    clauses,
    listing,
    restored,
    say,
    say_many,
    sentences,
    told,
    translated,
    translated_many,
)

_ = translated
n_ = translated_many

__all__ = [
    "LANGUAGES",
    "Said",
    "_",
    "clauses",
    "current",
    "day",
    "listing",
    "n_",
    "restored",
    "say",
    "say_many",
    "sentences",
    "told",
    "use",
]
