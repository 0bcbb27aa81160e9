"""Reference functions, one family a module; importing this package registers them all."""

from analysis.replay.functions import (  # noqa: F401
    activation,
    attention,
    cache,
    collectives,
    convolution,
    elementwise,
    embedding,
    linear,
    matmul,
    norm,
    quantised,
    rope,
    routing,
    softmax,
)
