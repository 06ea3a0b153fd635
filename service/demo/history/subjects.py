"""What agents work on: a small company's subjects, people, places and days.

Few enough that contexts recur, as they do in real life; texts are embedded once each.
"""

from datetime import date, timedelta
from random import Random

SUBJECTS = (
    "payment retries", "onboarding mails", "the harbour contract", "warehouse robots",
    "invoice export", "login outage", "quarterly forecast", "holiday calendar",
    "supplier audit", "mobile release", "data retention", "customer refunds",
)  # fmt: skip

PEOPLE = ("ada", "ben", "cyd", "dee", "eve", "fay", "gus", "hal")

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Tokyo", "Africa/Nairobi", "Europe/London")

CITY_OF = {
    "Europe/Berlin": "Munich", "America/New_York": "Boston", "Asia/Tokyo": "Osaka",
    "Africa/Nairobi": "Mombasa", "Europe/London": "Leeds",
}  # fmt: skip

_EPOCH = date(2026, 1, 5)


def subject(dice: Random) -> str:
    """One of the subjects; the first are commoner."""
    return SUBJECTS[min(int(dice.expovariate(0.3)), len(SUBJECTS) - 1)]


def day(dice: Random) -> str:
    """A day as `YYYY-MM-DD`."""
    return (_EPOCH + timedelta(days=int(dice.random() * 300))).isoformat()


def time(dice: Random) -> str:
    """A time of the day as `HH:MM`, on the half hour."""
    return f"{7 + int(dice.random() * 12):02d}:{dice.choice(('00', '30'))}"
