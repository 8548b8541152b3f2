"""Who the requests of schemathesis come from: many accounts in turn, because one may create 60 tasks a minute; and a task
is read by the account that made it."""

import itertools
import os
from pathlib import Path

import schemathesis

KEYS = Path(os.environ["SCHEMATHESIS_KEYS"]).read_text().split()
TURNS = itertools.cycle(KEYS)
OWNERS = {}


@schemathesis.auth(refresh_interval=None)
class Customers:
    """A bearer key for every request."""

    def get(self, case, context):
        """The owner of the task that is asked for, or the next account in the cycle."""
        task = (case.path_parameters or {}).get("id")
        return OWNERS.get(task) or next(TURNS)

    def set(self, case, key, context):
        """The one header of the document's security scheme."""
        case.headers["Authorization"] = f"Bearer {key}"


WISHES = itertools.cycle((None, None, "wait=1"))


@schemathesis.hook
def before_call(context, case, **kwargs):
    """Every third request asks to be held, beside what the document makes up for the header."""
    wish = next(WISHES)
    if wish:
        case.headers["Prefer"] = wish


@schemathesis.hook
def after_call(context, case, response):
    """Remembers who made a task."""
    if response.status_code == 202:
        key = response.request.headers["Authorization"]
        OWNERS[response.json()["id"]] = key.removeprefix("Bearer ")
