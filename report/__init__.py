"""A comparison as a document for somebody who has no access to this server."""

from report.content import Choices, Report, build
from report.markdown import markdown
from report.page import page
from report.redaction import Redactor
from report.workbook import workbook

__all__ = ["Choices", "Redactor", "Report", "build", "markdown", "page", "workbook"]
