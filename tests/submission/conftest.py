"""A packed submission of an honest model."""

from tests.helpers.submission_make import packed

__all__ = ["packed"]
