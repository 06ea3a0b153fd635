// Aftercall's plug-in for opencode: what happens to a call goes to POST /hooks/opencode, its answer
// into the call, its result or its error. A service that is away is said once, and costs nothing more.
import { readFileSync, readdirSync, statSync } from "node:fs"
import { homedir } from "node:os"
import { isAbsolute, join } from "node:path"

const ANSWERS_WITHIN_MS = 2000

const place = (variable, below) => {
  const given = process.env[variable] ?? ""
  return join(isAbsolute(given) ? given : join(homedir(), below), "aftercall")
}

const attempt = (read, otherwise) => {
  try {
    return read()
  } catch {
    return otherwise
  }
}

// The service that was started last, as `aftercall.running` lists them.
const running = () => {
  const folder = join(place("XDG_STATE_HOME", ".local/state"), "services")
  const files = readdirSync(folder).filter((name) => name.endsWith(".url")).map((name) => join(folder, name))
  files.sort((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs)
  return files.length ? readFileSync(files[0], "utf8").trim() : ""
}

const address = () =>
  process.env.AFTERCALL_URL || attempt(running, "") || "http://127.0.0.1:8799"

const key = () =>
  process.env.AFTERCALL_API_KEY ||
  attempt(() => readFileSync(join(place("XDG_CONFIG_HOME", ".config"), "api-key"), "utf8").trim(), "")

export const Aftercall = async () => {
  let servers = []
  let isSaid = false
  const notes = new Map() // what was changed before a call, until its result is there
  const advised = new Map() // what was said of a failed call: it is sent once, and told in each request

  const ask = async (event) => {
    try {
      const authorization = key() ? { authorization: `Bearer ${key()}` } : {}
      const answer = await fetch(`${address().replace(/\/$/, "")}/hooks/opencode`, {
        method: "POST",
        headers: { "content-type": "application/json", ...authorization },
        body: JSON.stringify({ ...event, servers }),
        signal: AbortSignal.timeout(ANSWERS_WITHIN_MS),
      })
      if (!answer.ok) throw new Error(`it answered ${answer.status}`)
      isSaid = false
      return await answer.json()
    } catch (problem) {
      if (!isSaid) console.error(`aftercall: no service at ${address()} (${problem}): calls go on without it`)
      isSaid = true
      return {}
    }
  }

  return {
    config: async (config) => {
      servers = Object.keys(config?.mcp ?? {})
    },
    "tool.execute.before": async (input, output) => {
      const { tool, sessionID, callID } = input
      const answer = await ask({
        event: "tool.execute.before",
        input: { tool, sessionID, callID },
        output: { args: output.args },
      })
      if (answer.refuse) throw new Error(answer.refuse)
      if (answer.args) {
        // A new object would be ignored: the one that is there is changed.
        for (const name of Object.keys(output.args)) delete output.args[name]
        Object.assign(output.args, answer.args)
      }
      if (answer.context) notes.set(callID, answer.context)
    },
    "tool.execute.after": async (input, output) => {
      const { tool, sessionID, callID, args } = input
      const { output: text, content, metadata } = output
      const answer = await ask({
        event: "tool.execute.after",
        input: { tool, sessionID, callID, args },
        output: { output: text, content, metadata: { exit: metadata?.exit } },
      })
      const said = [notes.get(callID), answer.context].filter(Boolean).join("\n")
      notes.delete(callID)
      if (!said) return
      if (typeof output.output === "string") output.output += `\n\n${said}`
      else if (Array.isArray(output.content)) output.content.push({ type: "text", text: said })
    },
    "experimental.chat.messages.transform": async (_input, output) => {
      for (const { info, parts } of output?.messages ?? []) {
        for (const part of parts ?? []) {
          if (part.type !== "tool" || part.state?.status !== "error") continue
          const { tool, callID, state } = part
          if (!advised.has(callID)) {
            const told = { tool, callID, state: { status: state.status, input: state.input, error: state.error } }
            const answer = await ask({
              event: "part",
              part: told,
              input: { sessionID: part.sessionID ?? info?.sessionID },
            })
            advised.set(callID, [notes.get(callID), answer.context].filter(Boolean).join("\n"))
            notes.delete(callID)
          }
          if (advised.get(callID)) state.error = `${state.error}\n\n${advised.get(callID)}`
        }
      }
    },
  }
}
