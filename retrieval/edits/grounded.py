"""Edits that take a value from somewhere: the error, the context, the call itself, the profile."""

from typing import Literal, Self

from aftercall.json_values import JsonValue
from aftercall.redaction import is_redacted
from retrieval.edits.base import EditDoesNotApplyError, Site, SupplyEdit
from retrieval.edits.places import leaves_like, number_of, value_at
from retrieval.reading import Fault
from retrieval.reading.faults import Path
from retrieval.stated import StatedForm, stated_in
from retrieval.values import CastError, cast


class FromError(SupplyEdit):
    """Take the value that the error itself states for this place."""

    kind: Literal["from_error"] = "from_error"

    def supply(self, site: Site) -> JsonValue:
        """The stated value, in the type of the one that is there."""
        sent = value_at(site.parameters, site.path)
        if isinstance(sent, dict | list):
            raise EditDoesNotApplyError(f"{self.place} has members; the error states one value")
        for fault in site.grounds.faults_at(site.path):
            stated = stated_by(fault)
            if stated is None or fault.kind == "unexpected" or is_redacted(stated):
                continue
            # What is said of no place is said of the value that it names.
            if fault.path or fault.value_text in (None, str(sent)):
                return _typed_like(stated, sent)
        raise EditDoesNotApplyError(f"the error states no value for {self.place}")


class FromContext(SupplyEdit):
    """Take the one value of a form that the caller's own account states and the call lacks."""

    kind: Literal["from_context"] = "from_context"
    form: StatedForm

    def supply(self, site: Site) -> JsonValue:
        """The stated value; a number as one unless a text is there."""
        said = {str(value) for _, value in leaves_like(site.parameters, ())}
        stated = [
            each.text
            for each in stated_in(site.grounds.context or "")
            if each.form == self.form and each.text not in said
        ]
        if len(stated) != 1 or is_redacted(stated[0]):
            raise EditDoesNotApplyError(f"the context does not state one value for {self.place}")
        return _as_stated(stated[0], self.form, value_at(site.parameters, site.path))


class Copy(SupplyEdit):
    """Take the value of another parameter of the same call."""

    kind: Literal["copy"] = "copy"
    source: Path

    def under(self, prefix: Path) -> Self:
        """Both places move."""
        moved = super().under(prefix)
        return moved.model_copy(update={"source": (*prefix, *self.source)})

    def supply(self, site: Site) -> JsonValue:
        """The other parameter's value."""
        value = value_at(site.parameters, self.source)
        if value is None or is_redacted(value):
            raise EditDoesNotApplyError(f"there is no {'/'.join(map(str, self.source))} to copy")
        return value


class Usual(SupplyEdit):
    """Take the value that is usual at this place in the tool's successes."""

    kind: Literal["usual"] = "usual"

    def supply(self, site: Site) -> JsonValue:
        """The most usual one."""
        for value in site.grounds.usual(site.path)[:1]:
            if not is_redacted(value):
                return value
        raise EditDoesNotApplyError(f"nothing is usual for {self.place}")


class Balance(SupplyEdit):
    """Change one number so that like numbers add up to the total that the error states.

    `payment_methods/-1/amount`: the last payment takes the difference between the stated total and
    that of all `payment_methods/*/amount`.
    """

    kind: Literal["balance"] = "balance"

    def supply(self, site: Site) -> JsonValue:
        """The number, moved by what the total lacks."""
        value = number_of(value_at(site.parameters, site.path))
        numbers = [number_of(each) for _, each in leaves_like(site.parameters, site.path)]
        total = sum(number for number in numbers if number is not None)
        if value is None or len(numbers) < 1:
            raise EditDoesNotApplyError(f"{self.place} is no number")
        for fault in site.grounds.faults:
            wanted = number_of(stated_by(fault))
            if wanted is not None and number_of(fault.value_text) == total != wanted:
                moved = round(value + wanted - total, 6)
                if moved > 0:
                    return int(moved) if float(moved).is_integer() else moved
        raise EditDoesNotApplyError(f"the error states no total of the numbers like {self.place}")


def stated_by(fault: Fault) -> JsonValue:
    """The right value that an error states beside the wrong one; None when it states none."""
    return fault.suggested if fault.stated is None else fault.stated


def _typed_like(stated: JsonValue, sent: JsonValue) -> JsonValue:
    """A number that is stated as text is a number where one was sent."""
    if isinstance(sent, int | float) and not isinstance(sent, bool) and isinstance(stated, str):
        try:
            return cast(stated, "number")
        except CastError:
            return stated
    return stated


def _as_stated(text: str, form: StatedForm, sent: JsonValue) -> JsonValue:
    if form != "number" or isinstance(sent, str):
        return text
    try:
        return cast(text, "number")
    except CastError:
        return text
