"""How a sixth set of servers words what is wrong with a call, for the kinds of `kinds_sixth`.

Each is written after the answers of a real API, client or harness, without its code. Some of them
name nothing, some the first fault only, and some never tell of names that they do not know.
"""

from collections.abc import Mapping

from bench.quality.voices import Voice
from bench.quality.voices_late import types_as
from bench.quality.voices_wild import worded

_TYPESCRIPT = types_as("number", "number", "boolean", "array", "object", "string")
_PYTHON = types_as("<class 'int'>", "<class 'float'>", "<class 'bool'>", "<class 'list'>, <class "
                   "'tuple'>", "<class 'dict'>", "<class 'str'>")  # fmt: skip

VOICES: Mapping[str, Voice] = {
    "field violations": worded(
        ('{{"error": {{"code": 400, "message": "Request contains an invalid argument.", "status": '
         '"INVALID_ARGUMENT", "details": [{{"@type": "type.googleapis.com/google.rpc.BadRequest", '
         '"fieldViolations": [{}]}}]}}}}',
         '{{"field": "{0}", "description": "Required field is not set."}}',
         '{{"field": "{0}", "description": "Cannot find field."}}',
         '{{"field": "{0}", "description": "Invalid value at \'{0}\' ({1})"}}'),
        ", ", types_as("TYPE_INT32", "TYPE_DOUBLE", "TYPE_BOOL", "TYPE_REPEATED", "TYPE_MESSAGE",
                       "TYPE_STRING"),
    ),
    "payments json": worded(
        ('{{"error": {{"type": "invalid_request_error", {}}}}}',
         '"code": "parameter_missing", "param": "{0}", "message": "Missing required param: {0}."',
         '"code": "parameter_unknown", "param": "{0}", "message": "Received unknown parameter: '
         '{0}"',
         '"param": "{0}", "message": "Invalid {1}: {3}"',
         '"param": "{0}", "message": "Invalid {0}: must be one of {1}"'),
    ),
    "graphql errors": worded(
        ('{{"errors": [{}], "data": null}}',
         '{{"message": "Field \\"{tool}\\" argument \\"{0}\\" of type \\"String!\\" is required, '
         'but it was not provided.", "extensions": {{"code": "GRAPHQL_VALIDATION_FAILED"}}}}',
         '{{"message": "Unknown argument \\"{0}\\" on field \\"Mutation.{tool}\\".", "extensions": '
         '{{"code": "GRAPHQL_VALIDATION_FAILED"}}}}',
         '{{"message": "{1} cannot represent the value of \\"{0}\\".", "extensions": {{"code": '
         '"BAD_USER_INPUT"}}}}',
         '{{"message": "Value does not exist in the enum of \\"{0}\\".", "extensions": {{"code": '
         '"BAD_USER_INPUT"}}}}'),
        ", ", types_as("Int", "Float", "Boolean", "[String!]", "InputObject", "String"),
    ),
    "cloud client": worded(
        ("Parameter validation failed:\n{}", 'Missing required parameter in input: "{0}"',
         'Unknown parameter in input: "{0}", must be one of: {known}',
         "Invalid type for parameter {0}, value: {2}, type: {3}, valid types: {1}",
         "Invalid value for parameter {0}: {2}, valid values: {1}"), "\n", _PYTHON,
    ),
    "unknown arguments": worded(
        ("Error in {tool}: {}", "Missing arguments: {0}", "Unknown arguments: {0}",
         "Bad argument: {0}"), "; ",
    ),
    "chat json": worded(
        ('{{"ok": false, "error": "invalid_arguments", "response_metadata": {{"messages": [{}]}}}}',
         '"[ERROR] missing required field: {0}"', '"[ERROR] unsupported field: {0}"',
         '"[ERROR] must be {1} [json-pointer:/{0}]"',
         '"[ERROR] must be a valid enum value [json-pointer:/{0}]"'), ", ",
    ),
    "pages": worded(
        ('{{"object": "error", "status": 400, "code": "validation_error", "message": "body failed '
         'validation: {}"}}', "body.{0} should be defined, instead was `undefined`.",
         "body.{0} should be not present, instead was set.",
         "body.{0} should be a {1}, instead was `{3}`.", "body.{0} should be one of: {1}."),
        None, _TYPESCRIPT,
    ),
    "forge": worded(
        ('{{"message": "Invalid request.\\n\\n{}", "documentation_url": "https://docs.acme.dev/rest'
         '", "status": "422"}}', '\\"{0}\\" wasn\'t supplied.',
         '\\"{0}\\" is not a permitted key.',
         "For 'properties/{0}', {3} is not a {1}.",
         "For 'properties/{0}', value is not a member of [{1}]."), "\\n\\n",
    ),
    "model's api": worded(
        ("Error code: 400 - {}", "Missing required parameter: '{0}'.", "Unknown parameter: '{0}'.",
         "Invalid type for '{0}': expected a {1}, but got a {3} instead.",
         "Invalid value: {2}. Supported values are: {1}."),
    ),
    "coding harness": worded(
        ("<tool_use_error>InputValidationError: {tool} failed due to the following issues:\n{}"
         "</tool_use_error>", "The required parameter `{0}` is missing",
         "An unexpected parameter `{0}` was provided",
         "The parameter `{0}` type is expected as `{1}` but provided as `{3}`",
         "The parameter `{0}` has a value that is not an option"), "\n", _TYPESCRIPT,
    ),
    "editor's harness": worded(
        ("[ERROR] You did not use {tool} in the right way: {}\nPlease retry with complete "
         "parameters.", "Missing value for required parameter '{0}'.", "", "'{0}' is invalid.")),
    "csharp sdk": worded(
        ("An error occurred invoking '{tool}': {}",
         "The arguments dictionary is missing a value for the required parameter '{0}'. (Parameter "
         "'arguments')", "", "The JSON value could not be converted to {1}. Path: $"),
        None, types_as("System.Int32", "System.Double", "System.Boolean", "System.String[]",
                       "System.Text.Json.JsonElement", "System.String"),
    ),
    "zod in words": worded(
        ("Validation error: {}", 'Required at "{0}"', "Unrecognized key(s) in object: '{0}'",
         'Expected {1}, received {3} at "{0}"',
         'Invalid enum value. Expected one of {1}, received {2} at "{0}"'), "; ", _TYPESCRIPT,
    ),
    "try again": worded(
        ("The tool call failed validation. Check the parameters and try again.", "", "", "")),
    "bad request": worded(("Bad request", "", "", "")),
}  # fmt: skip
