"""json-repair, which reads loose JSON and brings it into the form that a schema wants."""

import json
import sys

import json_repair


def repaired(question):
    text = json.dumps(question["call"])
    try:
        return json_repair.loads(text, schema=question["schema"])
    except Exception:  # noqa: BLE001  # nothing satisfies the schema, or it cannot be read
        return None


for line in sys.stdin:
    call = repaired(json.loads(line))
    print(json.dumps({"call": call if isinstance(call, dict) else None}), flush=True)
