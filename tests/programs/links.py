"""Report links and pictures of a built site that lead nowhere, and files that its pages load from the network.

Zensical checks links between pages of Markdown; this also checks pictures, other files, and what the theme adds.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# An element that loads a file, and its attribute with the address; a link (`a`) only leads there.
LOADS = {"img": "src", "script": "src", "iframe": "src", "source": "srcset", "link": "href"}


class Page(HTMLParser):
    """The addresses and anchors of a page.

    Args:
        path: File of the page.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the element's anchor and address."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag in LOADS and LOADS[tag] in found:
            self.loaded.append(found[LOADS[tag]])
        if tag == "a" and "href" in found:
            self.linked.append(found["href"])


def broken(site: Path) -> list[str]:
    """Return one line for each address of the site's pages that leads nowhere or loads from the network."""
    pages = {path: Page(path) for path in sorted(site.resolve().rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        found += [f"{name}: loads {address} from the network" for address in page.loaded if urlsplit(address).netloc]
        # The error page has addresses from the root of the server, wherever that is.
        addresses = [] if name.name == "404.html" else [*page.loaded, *page.linked]
        found += [f"{name}: {address} leads nowhere" for address in addresses if not _found(pages, path, address)]
    return sorted(set(found))


def _found(pages: dict[Path, Page], path: Path, address: str) -> bool:
    url = urlsplit(address)
    if url.scheme or url.netloc:
        return True  # not of this site
    file = (path.parent / unquote(url.path)).resolve() if url.path else path
    file = file / "index.html" if file.is_dir() else file
    if url.fragment and file in pages:
        return unquote(url.fragment) in pages[file].anchors
    return file.is_file()


if __name__ == "__main__":
    lines = broken(Path(sys.argv[1]))
    sys.exit("\n".join(lines) if lines else 0)
