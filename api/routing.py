"""All routes of the product, for the ASGI application that also serves the pages."""

from __future__ import annotations

from collections.abc import Callable

from starlette.routing import Route

from api.reports import Reports
from api.uploads import UploadRoutes
from api.views import Views
from store import workspace
from store.workspace import Workspace


def routes(base: str = "", *, served: Callable[[], Workspace] = workspace.default) -> list[Route]:
    """Routes below `base`, the server's base path; `served` gives the workspace when needed."""
    prefix = f"/{base.strip('/')}/api" if base.strip("/") else "/api"
    upload, views, reports = UploadRoutes(served), Views(served), Reports(served)
    one = f"{prefix}/uploads/{{upload_id}}"
    return [
        Route(f"{prefix}/healthz", views.health, methods=["GET"]),
        Route(f"{prefix}/comparisons/{{comparison_id}}.json", views.comparison, methods=["GET"]),
        Route(f"{prefix}/comparisons/{{comparison_id}}/findings.json", views.findings),
        Route(f"{prefix}/comparisons/{{comparison_id}}/report.{{kind}}", reports.report),
        Route(f"{prefix}/uploads", upload.begin, methods=["POST"]),
        Route(one, upload.cancel, methods=["DELETE"]),
        Route(f"{one}/slices/{{number:int}}", upload.put_slice, methods=["PUT"]),
        Route(f"{one}/complete", upload.complete, methods=["POST"]),
    ]
