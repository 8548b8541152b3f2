#!/usr/bin/env python3
"""How long the sentences of README and of the customers' pages are: mean and longest, in words. Fails where a mean is
above 20, or a sentence of README above 30. Code blocks, tables and headings are left out; code within a line counts
as one word. `checks/readability.py FOLDER` measures another checkout; `--long N` prints the sentences above N words."""

import argparse
import pathlib
import re
import sys

MEAN_MAX = 20
README_LONGEST = 30


def customers_pages(root: pathlib.Path) -> list[str]:
    """README and the pages that SUMMARY.md lists for customers."""
    contents = (root / "docs/SUMMARY.md").read_text()
    part = contents.split("# For operators")[0]
    pages = re.findall(r"\]\(([^)]+\.md)\)", part)
    return ["README.md"] + [f"docs/{page}" for page in pages if page != "api-reference.md"]


def sentences(text: str) -> list[str]:
    text = re.sub(r"```.*?```", "\n\n", text, flags=re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    blocks: list[str] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith(("#", "|", "!")):
            blocks.append("")
        elif re.match(r"\s*([-*]|\d+\.) ", line):
            blocks.append(re.sub(r"^\s*([-*]|\d+\.) ", "", line))
        elif blocks and blocks[-1]:
            blocks[-1] += " " + line.strip()
        else:
            blocks.append(line.strip())
    found = []
    for block in blocks:
        block = re.sub(r"`[^`]*`", "code", block)
        block = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", block)
        block = block.replace("**", "").replace("*", "")
        for sentence in re.split(r"(?<=[.!?:;])[\s\"')]+(?=[A-Z\"'(])|(?<=[.!?])$", block):
            words = re.findall(r"[A-Za-z0-9À-ÿ][\w'’.,%–-]*", sentence)
            if len(words) > 1:
                found.append(" ".join(words))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=pathlib.Path(__file__).parent.parent, type=pathlib.Path)
    parser.add_argument("--long", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    faults = []
    print(f"{'page':32} {'sentences':>9} {'mean':>6} {'longest':>8}")
    for page in customers_pages(arguments.folder):
        lengths = [(len(one.split()), one) for one in sentences((arguments.folder / page).read_text())]
        mean = sum(length for length, _ in lengths) / len(lengths)
        longest = max(lengths)
        print(f"{page:32} {len(lengths):9} {mean:6.1f} {longest[0]:8}")
        if mean > MEAN_MAX:
            faults.append(f"{page}: the mean sentence has {mean:.1f} words, more than {MEAN_MAX}: split the longest ones")
        if page == "README.md" and longest[0] > README_LONGEST:
            faults.append(f"README.md: {longest[0]} words, more than {README_LONGEST}: {longest[1]}")
        for length, sentence in lengths:
            if arguments.long and length > arguments.long:
                print(f"    {length}: {sentence}")
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
