// The client that plugins get: OpenCode's SDK where a plugin or the install directory has it, else one that knows the routes.
import { existsSync } from "node:fs"

const routes = {
  session: {
    list: "GET /session", create: "POST /session", get: "GET /session/{id}", update: "PATCH /session/{id}", delete: "DELETE /session/{id}", status: "GET /session/status",
    children: "GET /session/{id}/children", todo: "GET /session/{id}/todo", messages: "GET /session/{id}/message", message: "GET /session/{id}/message/{messageID}",
    prompt: "POST /session/{id}/message", promptAsync: "POST /session/{id}/prompt_async", command: "POST /session/{id}/command", shell: "POST /session/{id}/shell",
    abort: "POST /session/{id}/abort", fork: "POST /session/{id}/fork", diff: "GET /session/{id}/diff", init: "POST /session/{id}/init", summarize: "POST /session/{id}/summarize",
    revert: "POST /session/{id}/revert", unrevert: "POST /session/{id}/unrevert",
  },
  app: { log: "POST /log", agents: "GET /agent" },
  tui: { showToast: "POST /tui/show-toast", appendPrompt: "POST /tui/append-prompt", submitPrompt: "POST /tui/submit-prompt", clearPrompt: "POST /tui/clear-prompt", executeCommand: "POST /tui/execute-command" },
  config: { get: "GET /config", providers: "GET /config/providers" },
  provider: { list: "GET /provider" },
  project: { list: "GET /project", current: "GET /project/current" },
  path: { get: "GET /path" },
  vcs: { get: "GET /vcs" },
  command: { list: "GET /command" },
  mcp: { status: "GET /mcp" },
  tool: { ids: "GET /experimental/tool/ids", list: "GET /experimental/tool" },
  find: { text: "GET /find", files: "GET /find/file", symbols: "GET /find/symbol" },
  file: { list: "GET /file", read: "GET /file/content", status: "GET /file/status" },
}

export async function client({ url, token, directory, dirs }) {
  const baseUrl = (url || "http://127.0.0.1:4096").replace(/\/$/, "")
  const send = (request) => {
    if (token) request.headers.set("authorization", `Bearer ${token}`)
    return fetch(request, { timeout: false })
  }
  for (const dir of dirs) {
    try {
      const file = Bun.resolveSync("@opencode-ai/sdk/client", dir)
      if (existsSync(file)) return (await import(file)).createOpencodeClient({ baseUrl, directory, fetch: send })
    } catch {}
  }
  const out = {}
  for (const [group, methods] of Object.entries(routes)) {
    out[group] = {}
    for (const [name, route] of Object.entries(methods)) out[group][name] = (options) => call(route, options)
  }
  out.event = { subscribe: async (options) => ({ stream: lines(await send(request("GET /event", options))) }) }
  return out

  function request(route, { path = {}, query = {}, body, signal } = {}) {
    const [method, template] = route.split(" ")
    const target = new URL(baseUrl + template.replace(/\{(\w+)\}/g, (_, key) => encodeURIComponent(path[key])))
    for (const [key, value] of Object.entries({ directory, ...query })) if (value !== undefined) target.searchParams.set(key, String(value))
    const headers = body === undefined && method === "GET" ? {} : { "content-type": "application/json" }
    return new Request(target, { method, signal, headers, body: method === "GET" ? undefined : JSON.stringify(body ?? {}) })
  }

  async function call(route, options) {
    const sent = request(route, options)
    const response = await send(sent)
    const text = await response.text()
    const data = text && /json/.test(response.headers.get("content-type") ?? "") ? JSON.parse(text) : text || undefined
    if (response.ok) return { data, request: sent, response }
    if (options?.throwOnError) throw new Error(`${route}: ${response.status} ${text.slice(0, 500)}`)
    return { error: data ?? {}, request: sent, response }
  }

  async function* lines(response) {
    let rest = ""
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const all = (rest + chunk).split("\n")
      rest = all.pop()
      for (const line of all) if (line.startsWith("data:")) yield JSON.parse(line.slice(5))
    }
  }
}
