"""How a fifth set of servers words what is wrong with a call, for the kinds of `kinds_late`.

Each is written after the messages of a real library or database, without its code. Some name the
parameter in words of their own, by its place, or not at all.
"""

from collections.abc import Mapping

from bench.quality.voices import Voice
from bench.quality.voices_wild import worded

_TYPES = ("integer", "number", "boolean", "array", "object", "string")


def types_as(*names: str) -> Mapping[str, str]:
    """What a server calls JSON's integer, number, boolean, array, object and string."""
    return dict(zip(_TYPES, names, strict=True))


_OF_DOTNET = types_as("System.Int32", "System.Double", "System.Boolean",
                      "System.Collections.Generic.List`1[System.String]", "System.Object",
                      "System.String")  # fmt: skip
_OF_SWIFT = types_as("Swift.Int", "Swift.Double", "Swift.Bool", "Swift.Array<Any>",
                     "Swift.Dictionary<String, Any>", "Swift.String")  # fmt: skip
_OF_STRCONV = types_as(
    *(f"strconv.Parse{each}: invalid syntax" for each in ("Int", "Float", "Bool")),
    *(3 * ("invalid syntax",)),
)

VOICES: Mapping[str, Voice] = {
    "dry": worded(
        ("{{{}}}", ':{0}=>["is missing"]', ':{0}=>["is not allowed"]', ':{0}=>["must be {1}"]',
         ':{0}=>["must be one of: {1}"]'),
        ", ", types_as("an integer", "a float", "boolean", "an array", "a hash", "a string"),
    ),
    "bean": worded(
        ("jakarta.validation.ConstraintViolationException: {}", "{tool}.request.{0}: must not be "
         "null", '{tool}.request: Unrecognized field "{0}"', "{tool}.request.{0}: must be {1}",
         "{tool}.request.{0}: not one of the values accepted for Enum class: [{1}]"),
        ", ", types_as("an int", "a double", "a boolean", "a List", "an object", "a String"),
    ),
    "system text json": worded(
        ("System.Text.Json.JsonException: {}",
         "JSON deserialization for type 'Acme.Tools.{Tool}Args' was missing required properties "
         "including: '{0}'.",
         "The JSON property '{0}' could not be mapped to any .NET member contained in type "
         "'Acme.Tools.{Tool}Args'.",
         "The JSON value could not be converted to {1}. Path: $.{0} | LineNumber: 0 | "
         "BytePositionInLine: 27.",
         "The JSON value could not be converted to Acme.Tools.{Name}. Path: $.{0} | LineNumber: 0 "
         "| BytePositionInLine: 27."), None, _OF_DOTNET,
    ),
    "postgres": worded(
        ("ERROR:  {}",
         'null value in column "{0}" of relation "{tool}" violates not-null constraint',
         'column "{0}" of relation "{tool}" does not exist',
         "invalid input syntax for type {1}: {2}",
         'invalid input value for enum {tool}_{0}: {2}'),
        None, types_as("integer", "double precision", "boolean", "text[]", "json", "text"),
    ),
    "sql server": worded(
        ("{}",
         "Procedure or function '{tool}' expects parameter '@{0}', which was not supplied.",
         "@{0} is not a parameter for procedure {tool}.",
         "Error converting data type nvarchar to {1}.",
         "The INSERT statement conflicted with the CHECK constraint \"CK_{tool}_{0}\". The "
         "conflict occurred in database \"acme\", table \"dbo.{tool}\", column '{0}'."),
        None, types_as("int", "float", "bit", "xml", "xml", "nvarchar"),
    ),
    "protojson": worded(
        ("rpc error: code = InvalidArgument desc = {}", "validation error: {0}: value is required",
         'proto: (line 1:2): unknown field "{0}"',
         "proto: (line 1:38): invalid value for {1} field {0}: {2}",
         "proto: (line 1:38): invalid value for enum field {0}: {2}"),
        None, types_as("int64", "double", "bool", "repeated", "message", "string"),
    ),
    "graphql java": worded(
        ("{}", "Validation error (MissingFieldArgument@[{tool}]) : Missing field argument '{0}'",
         "Validation error (UnknownArgument@[{tool}]) : Unknown field argument '{0}'",
         "Validation error (WrongType@[{tool}]) : argument '{0}' with value {2} is not a valid "
         "'{1}'",
         "Validation error (WrongType@[{tool}]) : argument '{0}' with value 'EnumValue{{name={2}}}'"
         " is not a valid '{Name}'"),
        "\n", types_as("Int", "Float", "Boolean", "[String]", "Input", "String"),
    ),
    "xerces": worded(
        ("{}", "cvc-complex-type.2.4.b: The content of element '{tool}' is not complete. One of "
         "'{{{0}}}' is expected.",
         "cvc-complex-type.2.4.a: Invalid content was found starting with element '{0}'. One of "
         "'{{{known}}}' is expected.",
         "cvc-datatype-valid.1.2.1: {2} is not a valid value for '{1}'.",
         "cvc-enumeration-valid: Value {2} is not facet-valid with respect to enumeration '[{1}]'. "
         "It must be a value from the enumeration."),
        None, types_as("integer", "double", "boolean", "list", "anyType", "string"),
    ),
    "cobra": worded(
        ("Error: {}", 'required flag(s) "{0}" not set', "unknown flag: --{0}",
         'invalid argument {2} for "--{0}" flag: {1}',
         'invalid argument {2} for "--{0}" flag: must be one of {1}'), None, _OF_STRCONV,
    ),
    "cerberus": worded(
        ("{{{}}}", "'{0}': ['required field']", "'{0}': ['unknown field']",
         "'{0}': ['must be of {1} type']",
         "'{0}': ['unallowed value {2}']"),
        ", ", types_as("integer", "float", "boolean", "list", "dict", "string"),
    ),
    "swift": worded(
        ("{}",
         'keyNotFound(CodingKeys(stringValue: "{0}", intValue: nil), Swift.DecodingError.Context('
         'codingPath: [], debugDescription: "No value associated with key CodingKeys(stringValue: '
         '\\"{0}\\", intValue: nil) (\\"{0}\\").", underlyingError: nil))',
         "The data couldn\u2019t be read because it isn\u2019t in the correct format.",
         "typeMismatch({1}, Swift.DecodingError.Context(codingPath: [CodingKeys(stringValue: "
         '"{0}", intValue: nil)], debugDescription: "Expected to decode {1} but found a {3} '
         'instead.", underlyingError: nil))',
         'dataCorrupted(Swift.DecodingError.Context(codingPath: [CodingKeys(stringValue: "{0}", '
         'intValue: nil)], debugDescription: "Cannot initialize {Name} from invalid String value '
         '{2}", underlyingError: nil))'), None, _OF_SWIFT,
    ),
    "lua": worded(
        ("{}", "bad argument #{place} to '{tool}' (value expected)", "bad usage of '{tool}'",
         "bad argument #{place} to '{tool}' ({1} expected, got {3})",
         "bad argument #{place} to '{tool}' (invalid option {2})"),
        None, types_as("number", "number", "boolean", "table", "table", "string"),
    ),
    "form": worded(
        ("{}", "Please fill in the {label}.",
         "Some of the information that you sent is not used on this form.",
         "The {label} that you entered is not valid.",
         "Please choose one of the options for the {label}."), " ",
    ),
    "japanese": worded(
        ("リクエストが不正です。{}", "「{0}」は必須です。", "不明なパラメータ「{0}」です。",
         "「{0}」の形式が正しくありません。",
         "「{0}」は選択肢にありません。"), "",
    ),
    "odata": worded(
        ('{{"error": {{"code": "", "message": "{}"}}}}', "The {Name} field is required.",
         "The property '{0}' does not exist on type 'Default.{Tool}'. Make sure to only use "
         "property names that are defined by the type.",
         "Cannot convert a value to target type '{1}' because of conversion error.",
         "Requested value {2} was not found."),
        None, types_as("Edm.Int32", "Edm.Double", "Edm.Boolean", "Collection(Edm.String)",
                     "Edm.Untyped", "Edm.String"),
    ),
    "valibot": worded(
        ("ValiError: {}", 'Invalid key: Expected "{0}" but received undefined',
         'Invalid key: Expected never but received "{0}"',
         "Invalid type: Expected {1} but received {2}",
         "Invalid type: Expected ({1}) but received {2}"),
        None, types_as("number", "number", "boolean", "Array", "Object", "string"),
    ),
    "arktype": worded(
        ("{}", "{0} must be present (was missing)", "{0} must be removed",
         "{0} must be {1} (was {2})",
         "{0} must be one of {1} (was {2})"),
        "\n", types_as("an integer", "a number", "boolean", "an array", "an object", "a string"),
    ),
    "gojsonschema": worded(
        ("{}", "(root): {0} is required", "(root): Additional property {0} is not allowed",
         "{0}: Invalid type. Expected: {1}, given: {3}",
         "{0}: {0} must be one of the following: {1}"), "\n",
    ),
    "chat": worded(('{{"ok": false, "error": "invalid_arguments"}}', "", "", "")),
}  # fmt: skip
