"""What the compose files must say; no Docker engine is asked."""

import sys
from pathlib import Path

import yaml

FOLDER = Path(__file__).parent.parent / "packages/docker"
# --drain, and some to say goodbye.
GRACE_SECONDS_MIN = 25 + 10


def seconds(text):
    return int(text.removesuffix("s"))


def check_service(name, service):
    assert service["stop_grace_period"] and seconds(service["stop_grace_period"]) >= GRACE_SECONDS_MIN, name
    assert service["healthcheck"]["test"] == ["CMD", "/upscale", "health"], name
    assert service["read_only"] and service["cap_drop"] == ["ALL"], name
    assert service["restart"] == "unless-stopped", name


def check_front(name, service):
    environment = service["environment"]
    # Links lead to what is published, unless configured otherwise.
    assert environment["UPSCALE_BASE_URL"] == "${UPSCALE_BASE_URL:-http://127.0.0.1:8080}", name
    assert service["ports"] == ["127.0.0.1:8080:8080"], name
    assert not {"UPSCALE_RESULTS_LISTEN", "UPSCALE_RESULT_URL"} & environment.keys(), name
    assert environment["UPSCALE_SECRET_KEY_FILE"] == "/secret/key"
    assert "secret:/secret:ro" in service["volumes"], name
    assert service["depends_on"]["secret-key"] == {"condition": "service_completed_successfully"}


def needed(value):
    """Variables without a default."""
    return "${" in str(value) and (":?" in str(value))


def main():
    single = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    fleet = yaml.safe_load((FOLDER / "compose.fleet.yaml").read_text())
    assert not needed(single), "the single node needs nothing"
    assert single["name"] != fleet["name"]
    check_service("single", single["services"]["upscale"])
    check_front("single", single["services"]["upscale"])
    for name in ["api", "worker"]:
        check_service(name, fleet["services"][name])
        assert fleet["services"][name]["depends_on"]["database"] == {"condition": "service_healthy"}
    check_front("api", fleet["services"]["api"])
    worker = fleet["services"]["worker"]
    assert "UPSCALE_SECRET_KEY_FILE" not in worker["environment"] and "ports" not in worker
    for file in [single, fleet]:
        used = {str(volume).split(":")[0] for service in file["services"].values() for volume in service.get("volumes", [])}
        assert used == set(file["volumes"]), used
    print("the compose files say what they should")
    return 0


sys.exit(main())
