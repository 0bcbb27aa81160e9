"""HTTP routes beside the pages: upload, health and views as JSON."""

from api.routing import routes

__all__ = ["routes"]
