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

// inside answers what plugins fetch from an address that the host has given: as messages, so that a plugin needs neither a port nor a token.
export function inside(base, say) {
  const open = new Map() // requests without a whole answer, by number
  let last = 0
  const outside = globalThis.fetch
  const send = async (request) => {
    const { method, signal } = request
    const url = new URL(request.url)
    const body = await request.text()
    signal?.throwIfAborted()
    return new Promise((answer, fail) => {
      const one = { n: ++last, answer, fail, parts: [] }
      open.set(one.n, one)
      one.stop = () => end(one, signal.reason, true)
      signal?.addEventListener("abort", one.stop)
      one.leave = () => signal?.removeEventListener("abort", one.stop)
      say({ fetch: { method, path: url.pathname + url.search, headers: Object.fromEntries(request.headers), body }, n: one.n })
    })
  }
  const end = (one, error, cancel) => {
    if (!open.delete(one.n)) return
    one.leave()
    if (cancel) say({ fetch: { cancel: true }, n: one.n })
    if (!error) return
    one.fail(error) // nothing, once there is an answer
    one.out?.error(error)
  }
  // next hands a part to the reader, and says so: no more parts come than are read.
  const next = (one) => {
    if (!one.wanted || !one.parts.length) return
    const { body, more } = one.parts.shift()
    one.wanted = !body
    if (more) say({ fetch: { read: 1 }, n: one.n })
    if (body) one.out.enqueue(new TextEncoder().encode(body))
    if (!more) one.out.close()
    else next(one)
  }
  const begun = (one, { status, headers, body, more }) => {
    const init = { status, headers }
    if (!more) return one.answer(new Response([101, 204, 205, 304].includes(status) ? null : (body ?? ""), init))
    const stream = new ReadableStream(
      {
        start: (out) => void (one.out = out),
        pull() {
          one.wanted = true
          next(one)
        },
        cancel: () => end(one, undefined, true),
      },
      { highWaterMark: 0 },
    )
    one.answer(new Response(stream, init))
  }
  const fetched = (part) => {
    const one = open.get(part.n)
    if (!one) return
    if (part.error) return end(one, new Error(part.error))
    if (!one.out) begun(one, part)
    if (one.out) {
      one.parts.push(part)
      next(one)
    }
    if (!part.more) end(one)
  }
  globalThis.fetch = Object.assign(async (input, init) => {
    const address = String(input?.url ?? input)
    return address.startsWith(base) && new URL(address).origin === base ? send(new Request(input, init)) : outside(input, init)
  }, outside)
  return { send, fetched }
}

export async function client({ url: baseUrl, send, directory, dirs }) {
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
