#!/usr/bin/env bash
# Builds the book into target/book and looks at what was built: every page of the contents is there, nothing was left
# unincluded, and no relative link or picture of the built pages leads nowhere.
set -euo pipefail
cd "$(dirname "$0")/.."
# Unoptimised: it is built in a minute and makes these pages in a second.
command -v mdbook >/dev/null ||
  cargo install --locked --debug --no-default-features --features search mdbook@0.5.4

rm -rf target/book
mdbook build docs
python3 - target/book docs/SUMMARY.md <<'END'
import html.parser, pathlib, re, sys, urllib.parse

book, contents = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text()
pages = [book / name.replace(".md", ".html") for name in re.findall(r"\]\(([^)]+)\)", contents)]
faults = [f"{page} was not built" for page in pages if not page.exists()]


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.ids = [], set()

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name == "id":
                self.ids.add(value)


def parse(page):
    links = Links()
    links.feed(page.read_text())
    return links


parsed = {page: parse(page) for page in pages if page.exists()}
followed = 0
for page, found in parsed.items():
    if "{{#" in page.read_text():
        faults.append(f"{page} holds what was not included")
    for link in found.links:
        url = urllib.parse.urlsplit(link)
        if url.scheme or url.netloc:
            continue
        followed += 1
        target = (page.parent / urllib.parse.unquote(url.path)).resolve() if url.path else page.resolve()
        if not target.exists():
            faults.append(f"{page}: {link} leads nowhere")
        elif url.fragment and target.suffix == ".html":
            there = next((f for p, f in parsed.items() if p.resolve() == target), None) or parse(target)
            if url.fragment not in there.ids:
                faults.append(f"{page}: {link}: no such heading")
if faults or not followed:
    sys.exit("\n".join(faults) or "no links found")
print(f"the book: {len(pages)} pages, {followed} links and pictures followed")
END
