#!/usr/bin/env bash
# The service with 32 slots in a cgroup of 2 GB and 16 of the largest images: the kernel kills children for memory,
# never the service, every task ends and the books hold. Takes minutes of processor time. Needs root and a memory cgroup that
# can be made by hand (version 1, or version 2 with the controller enabled at its root); says so where there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
UPSCALE_MEMORY_CHECK=1 cargo test --locked -p upscale --test contract memory:: -- --nocapture --test-threads 1
