"""Looks at the built book: `book.py BUILT DOCS`. Every page of the contents is there and in the side bar, every heading
came out with an anchor, no relative link or picture leads nowhere, llms.txt names pages that exist, and the search
finds the pages for customers and operators and none of the developers'."""

import html.parser
import pathlib
import re
import sys
import urllib.parse

DEVELOPERS = "# For developers"


class Page(html.parser.HTMLParser):
    """Links, anchors and headings of one built page."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.headings: list[str] = []
        self.nameless = 0
        self._open = ""
        self._is_content = False
        self.text = path.read_text()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        values = dict(attributes)
        self.links += [values[name] for name in ("href", "src") if values.get(name)]
        if values.get("id"):
            self.ids.add(values["id"])
        self._is_content |= tag == "main"
        if self._is_content and re.fullmatch("h[1-6]", tag):
            self._open = tag
            self.headings.append("")
            self.nameless += tag != "h1" and not values.get("id")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._open:
            self._open = ""
        if tag == "main":
            self._is_content = False

    def handle_data(self, data: str) -> None:
        if self._open:
            self.headings[-1] += data


def written_headings(source: pathlib.Path) -> list[str]:
    """Headings of a Markdown page and of what it includes, as plain text."""
    text = source.read_text()
    for name in re.findall(r"^\{\{#include (.+)\}\}$", text, re.M):
        text += (source.parent / name).read_text()
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    found = re.findall(r"^#{1,6} (.+)$", text, re.M)
    return [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip() for heading in found]


def check_links(built: pathlib.Path, pages: dict[pathlib.Path, Page]) -> tuple[list[str], int]:
    faults, followed = [], 0
    for path, page in pages.items():
        if "{{#" in page.text:
            faults.append(f"{path} holds what was not included")
        for link in page.links:
            url = urllib.parse.urlsplit(link)
            if url.scheme or url.netloc:
                continue
            followed += 1
            target = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path.resolve()
            if not target.exists():
                faults.append(f"{path}: {link} leads nowhere")
            elif url.fragment and target.suffix == ".html":
                there = next((page for path, page in pages.items() if path.resolve() == target), None) or Page(target)
                if url.fragment not in there.ids:
                    faults.append(f"{path}: {link}: no such heading")
    for link in re.findall(r"\]\(([^)]+)\)", (built / "llms.txt").read_text()):
        followed += 1
        if not (built / link).exists():
            faults.append(f"llms.txt: {link} leads nowhere")
    return faults, followed


def check_search(built: pathlib.Path, contents: str) -> list[str]:
    """The names of pages in the search's index, against the parts of the contents."""
    index = "".join(path.read_text() for path in built.glob("searchindex*.js"))
    faults = [] if index else ["the book has no search index"]
    for_readers, for_developers = contents.split(DEVELOPERS)
    for part, is_found in ((for_readers, True), (for_developers, False)):
        for name in re.findall(r"\]\(([^)]+)\.md\)", part):
            if (f"{name}.html" in index) != is_found:
                faults.append(f"the search {'misses' if is_found else 'finds'} {name}")
    return faults


def main() -> None:
    built, docs = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    contents = (docs / "SUMMARY.md").read_text()
    names = [name.removesuffix(".md") for name in re.findall(r"\]\(([^)]+)\)", contents)]
    faults = [f"{name} was not built" for name in names if not (built / f"{name}.html").exists()]
    side_bar = (built / "toc.html").read_text()
    faults += [f"the side bar lacks {name}" for name in names if f'href="{name}.html"' not in side_bar]
    pages = {}
    for name in names:
        if (built / f"{name}.html").exists():
            page = pages[built / f"{name}.html"] = Page(built / f"{name}.html")
            # mdBook curls quotation marks.
            curled = str.maketrans("’‘“”", "''\"\"")
            shown = [" ".join(heading.translate(curled).split()) for heading in page.headings]
            faults += [f"{name}.html has no heading {one}" for one in written_headings(docs / f"{name}.md") if one not in shown]
            faults += [f"{name}.html: {page.nameless} headings without an anchor"] if page.nameless else []
    links, followed = check_links(built, pages)
    faults += links + check_search(built, contents)
    if faults or followed < 500:
        sys.exit("\n".join(faults) or f"only {followed} links found")
    print(f"the book: {len(pages)} pages, {followed} links and pictures followed")


if __name__ == "__main__":
    main()
