"""The body of `POST /executions`: each record becomes an execution or the reason why it is none."""

from pydantic import ValidationError

from aftercall.models import Execution, Rejection
from service.http.explain import explain
from service.http.json_body import TooDeep, parse_json
from service.http.problems import InvalidRequestError, safe_message


def parse_records(body: bytes) -> Execution | list[Execution | Rejection]:
    """The one execution of a body, or what became of each record of its list, in order.

    Raises:
        MalformedJsonError: the body is not JSON.
        TooLargeError: the list is longer than a batch may be.
        InvalidRequestError: a single record that is no execution, or neither object nor list.
    """
    value = parse_json(body)
    if isinstance(value, list):
        return [_record(index, record) for index, record in enumerate(value)]
    if isinstance(value, TooDeep):
        raise InvalidRequestError(f"the body {value.message}")
    if not isinstance(value, dict):
        raise InvalidRequestError(
            "the body must be an execution (an object) or a list of executions"
        )
    try:
        return Execution.model_validate(value)
    except ValidationError as error:
        raise InvalidRequestError(explain(error, Execution)) from None


def _record(index: int, value: object) -> Execution | Rejection:
    if isinstance(value, TooDeep):
        return Rejection(index=index, message=f"the record {value.message}")
    if not isinstance(value, dict):
        return Rejection(index=index, message="the record must be a JSON object")
    try:
        return Execution.model_validate(value)
    except ValidationError as error:
        return Rejection(index=index, message=safe_message(explain(error, Execution)))
