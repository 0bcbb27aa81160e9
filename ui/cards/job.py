"""A comparison being computed: progress, time left, Cancel; then the verdict."""

from __future__ import annotations

import streamlit as st

from charts.names import for_html, for_markdown
from core.errors import ExplorerError
from core.numbers import count, duration, rate, share, size
from core.words import word
from language import _, told
from store.records import JobRecord
from store.workspace import Workspace
from ui import tour, url
from ui.markup import anchor

_POLL_S = 0.5
_WATCHED = (
    "watched-jobs"  # session key: jobs seen unfinished here, so that their end opens the page
)


def start(job: JobRecord) -> None:
    """In a callback: shows the job's progress, or its comparison when that was made before."""
    if job.status == "done" and job.comparison_id:
        url.go_after("overview", c=job.comparison_id, **tour.after_sample())
        return
    st.session_state.setdefault(_WATCHED, set()).add(job.id)
    url.put(job=job.id)


def is_running(workspace: Workspace) -> bool:
    """Whether the job the address names is still at work."""
    asked = url.get("job")
    return asked is not None and any(
        job.id == asked and not job.is_over for job in workspace.jobs()
    )  # fmt: skip


def draw(workspace: Workspace) -> None:
    """The job the address names, if any. Going back to a finished one does not jump away again."""
    asked = url.get("job")
    if asked is None:
        return
    with st.container(key="job"):
        try:
            job = workspace.job(asked)
        except ExplorerError as error:
            st.warning(f"{for_markdown(error.message)} {for_markdown(error.hint)}")
            return
        if job.is_over:
            _over(job)
        else:
            st.session_state.setdefault(_WATCHED, set()).add(job.id)
            st.fragment(_progress, run_every=_POLL_S)(workspace, job.id)


def _over(job: JobRecord) -> None:
    watched: set[str] = st.session_state.get(_WATCHED, set())
    if job.status == "done" and job.comparison_id:
        if job.id in watched:
            watched.discard(job.id)
            url.go("overview", c=job.comparison_id, **tour.after_sample())
        st.html(
            f"<p>{for_html(_('Compared.'))} "
            f"{anchor(url.link('overview', c=job.comparison_id), _('Open it'))}</p>"
        )
    elif job.status == "failed":
        st.error(f"{for_markdown(job.error, 400)} {for_markdown(job.error_hint, 400)}")
    else:
        st.warning(
            _("The comparison was {status}. Compare goes on where it was.", status=word(job.status))
        )


def _progress(workspace: Workspace, job_id: str) -> None:
    job = workspace.job(job_id)
    if job.is_over:
        st.rerun()
    part = job.done_bytes / job.total_bytes if job.total_bytes else 0.0
    with st.container(horizontal=True, vertical_alignment="center", key="job-line"):
        st.progress(min(1.0, part), text=_words(job))
        st.button(_("Cancel"), key="job-cancel", on_click=workspace.cancel, args=(job_id,))
    now = (
        _("Comparing {message}", message=told(job.message))
        if job.message
        else _("You may leave this page.")
    )
    st.html(f'<p class="px-muted">{for_html(now)}</p>')


def _words(job: JobRecord) -> str:
    if job.status == "queued" or not job.total_bytes:
        return _("Waiting for a free worker") if job.status == "queued" else _("Reading both dumps")
    done = _(
        "{share} · {bytes} of {all_bytes}, {pairs} of {all_pairs} pairs",
        share=share(job.done_bytes, job.total_bytes),
        bytes=size(job.done_bytes),
        all_bytes=size(job.total_bytes),
        pairs=count(job.done_pairs),
        all_pairs=count(job.total_pairs),
    )
    if not job.bytes_per_s > 0:
        return done
    return _(
        "{done}, {rate}, {time} left",
        done=done,
        rate=rate(job.bytes_per_s),
        time=duration(job.left_s),
    )
