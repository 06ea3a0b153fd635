"""A tool of the demo: the latest changes of a project, from a list that is exported next to it.

Called as `python latest_changes.py '{"max_count": 3}'`; prints JSON. It knows nothing of Aftercall,
and fails by itself when its list is half-written.
"""

import json
import sys
from pathlib import Path

LIST = Path(__file__).with_name("changes.json")


def main() -> None:
    """Print the first `max_count` changes of the list."""
    wanted = json.loads(sys.argv[1])
    changes = json.loads(LIST.read_text(encoding="utf-8"))
    sys.stdout.write(json.dumps(changes[: wanted.get("max_count", 10)]))


if __name__ == "__main__":
    main()
