"""Where an object lies in a file, for opening it and for showing it."""

from __future__ import annotations

from dataclasses import dataclass

from loaders.names import escaped


@dataclass(frozen=True, slots=True)
class Place:
    """A path from the root: link names as bytes, and the same escaped.

    `tracked` says that the group it is in recorded the order in which its members were made,
    `throughout` that every group on the way did.
    """

    file: str
    path: tuple[bytes, ...] = ()
    links: tuple[str, ...] = ()
    tracked: bool = True
    throughout: bool = True

    @property
    def name(self) -> str:
        """The escaped path, without a leading slash."""
        return "/".join(self.links)

    @property
    def where(self) -> str:
        """File and path, for messages; never longer than a few lines."""
        name = self.name
        return f"{self.file}: /{name if len(name) <= 2000 else name[:2000] + '…'}"

    def below(self, name: bytes, *, tracked: bool) -> Place:
        """The place of a member of this group."""
        path, links = (*self.path, name), (*self.links, escaped(name))
        return Place(self.file, path, links, tracked, self.throughout and tracked)
