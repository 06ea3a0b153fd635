// ajv with coercion of types, and with --defaults the schema's defaults filled in: as a server that is
// meant to be lenient sets it up.
const readline = require("node:readline");
const Ajv = require("ajv").default;
const Ajv2020 = require("ajv/dist/2020").default;

const OPTIONS = { coerceTypes: "array", useDefaults: process.argv.includes("--defaults"), strict: false, validateFormats: false,
  logger: false };

function repaired({ schema, call }) {
  if (schema === null) return null;
  const dialect = String(schema.$schema ?? "");
  const ajv = new (dialect.includes("2020-12") ? Ajv2020 : Ajv)(OPTIONS);
  try {
    return ajv.compile(schema)(call) ? call : null;  // it changes the call in place
  } catch {
    return null;  // a schema that it cannot read
  }
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  console.log(JSON.stringify({ call: repaired(JSON.parse(line)) }));
});
