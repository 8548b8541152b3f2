#!/usr/bin/env bash
# Builds the book into target/book and looks at what was built (book.py), and measures how long the sentences of README
# and of the customers' pages are (readability.py).
set -euo pipefail
cd "$(dirname "$0")/.."
# Unoptimised: it is built in a minute and makes these pages in a second.
command -v mdbook >/dev/null ||
  cargo install --locked --debug --no-default-features --features search mdbook@0.5.4

rm -rf target/book
mdbook build docs
python3 checks/book.py target/book docs
python3 checks/readability.py
