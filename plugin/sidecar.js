// Runs OpenCode plugins under Bun for the host at the other end of its standard streams, with which it speaks the protocol of
// docs/plugins.md: a JSON message a line. Standard output belongs to the protocol; what plugins print goes to standard error.
import fs from "node:fs"
import { AsyncLocalStorage } from "node:async_hooks"
import { Console } from "node:console"
import path from "node:path"
import { Readable, Writable } from "node:stream"
import { pathToFileURL } from "node:url"
import { client, inside } from "./client.js"

const plugins = new Map() // by name: { instances, tools }
const running = new Map() // calls of tools, by id: { stop, asks }
const current = new AsyncLocalStorage() // the name of the plugin that runs
let host // how plugins reach the program
const exit = process.exit.bind(process)
const cell = new Int32Array(new SharedArrayBuffer(4))

function write(fd, bytes) {
  for (let off = 0; off < bytes.length; ) {
    try {
      off += fs.writeSync(fd, bytes, off)
    } catch (e) {
      if (e.code !== "EAGAIN") return false
      Atomics.wait(cell, 0, 0, 1) // the pipe is full: the host reads it soon
    }
  }
  return true
}

// A message begins with a line end: what a plugin has written to our output may not end with one.
function say(line) {
  if (!write(1, Buffer.from(`\n${line}\n`))) exit(1)
}

const send = (message) => say(JSON.stringify(message))

const textOf = (e) => String(e?.message ?? e).slice(0, 4000) || "it threw nothing"

function keepPluginsFromOurStreams() {
  const out = new Writable({
    write(chunk, _, done) {
      const name = current.getStore()
      write(2, Buffer.from((name ? `[${name}] ` : "") + chunk))
      done()
    },
  })
  const quiet = new Console({ stdout: out, stderr: out })
  for (const key of ["log", "info", "warn", "error", "debug", "trace", "dir", "dirxml", "table", "group", "groupEnd", "count", "time", "timeEnd", "timeLog", "assert"])
    if (typeof quiet[key] === "function") console[key] = quiet[key].bind(quiet)
  console.write = (...all) => (write(2, Buffer.from(all.join(""))), 0)
  Object.defineProperty(process, "stdout", { value: out })
  Object.defineProperty(process, "stdin", { value: Readable.from([]) })
  process.exit = () => {
    throw new Error("a plugin cannot end the process that it shares with others")
  }
  const fault = (e) => send({ fault: textOf(e), plugin: ownerOf(e) })
  process.on("uncaughtException", fault)
  process.on("unhandledRejection", fault)
}

// ownerOf finds the plugin whose file, or else directory, stands in the stack of an error.
function ownerOf(e) {
  for (const key of ["file", "dir"]) for (const [name, p] of plugins) if (String(e?.stack).includes(p[key])) return name
  return current.getStore()
}

// ---- loading

const fallback = { dir: "", seen: new Set() }
const resolved = (name, dir) => {
  try {
    return dir && Bun.resolveSync(name, dir)
  } catch {}
}

// lend lets the files below a directory of the project import what only the install directory has: OpenCode puts @opencode-ai/plugin
// beside them. Imports are rewritten, since a module that is replaced for one file would be replaced for all.
function lend(dir) {
  if (fallback.seen.has(dir)) return
  fallback.seen.add(dir)
  const quoted = dir.replace(/[^\w/]/g, "\\$&")
  Bun.plugin({
    name: "lend " + dir,
    setup(build) {
      build.onLoad({ filter: new RegExp(`^${quoted}/(?!.*/node_modules/).*\\.[cm]?[jt]s$`) }, ({ path: file }) => {
        const loader = /ts$/.test(file) ? "ts" : "js"
        let contents = fs.readFileSync(file, "utf8")
        for (const { path: name } of new Bun.Transpiler({ loader }).scanImports(contents)) {
          if (/^[./]/.test(name) || resolved(name, path.dirname(file))) continue
          const to = resolved(name, fallback.dir)
          const literal = `(["'])${name.replace(/[^\w]/g, "\\$&")}\\2`
          if (to) contents = contents.replace(new RegExp(`(\\bfrom\\s*|\\bimport\\s*\\(?\\s*|\\brequire\\s*\\(\\s*)${literal}`, "g"), (_, before) => before + JSON.stringify(to))
        }
        return { contents, loader }
      })
    },
  })
}

// serverFunctions returns what OpenCode would call in a module: the server of a default export, else every export.
function serverFunctions(module) {
  const main = module.default
  if (main && typeof main === "object" && typeof main.server === "function") {
    if (main.tui) throw new TypeError("Plugin module must not export both server and tui")
    return [main.server]
  }
  const all = [...new Set(Object.values(module))].map((value) => (typeof value === "function" ? value : value?.server))
  if (all.length === 0) throw new TypeError("Plugin has no export")
  if (!all.every((f) => typeof f === "function")) throw new TypeError("Plugin export is not a function")
  return all
}

// One import after the other, each announced: when one of them blocks the process, the host knows which.
let imports = Promise.resolve()
const load = (id, file) => {
  send({ id, progress: {} })
  return import(pathToFileURL(file).href)
}
const within = (ms, promise) => Promise.race([promise, new Promise((_, late) => setTimeout(() => late(new Error("its import does not end")), ms).unref())])

async function init(m) {
  const { file, kind, options, directory, worktree, modules, server } = m.params
  host ??= inside(server, send)
  fallback.dir = modules || path.dirname(file)
  const entry = { file, dir: path.dirname(file), instances: [], tools: new Map() }
  plugins.set(m.plugin, entry)
  if (m.params.local) lend(entry.dir)
  const module = await (imports = imports.catch(() => {}).then(() => within(5000, load(m.id, file))))
  const notes = []
  if (kind === "tool") {
    const base = path.basename(file).replace(/\.[^.]*$/, "")
    entry.instances.push({ tool: Object.fromEntries(Object.entries(module).map(([name, def]) => [name === "default" ? base : `${base}_${name}`, def])) })
  } else {
    const functions = serverFunctions(module)
    const input = {
      client: await client({ url: server, send: host.send, directory, dirs: [entry.dir, fallback.dir] }),
      project: m.params.project ?? { id: "global", worktree, vcs: "git", time: { created: Date.now() } },
      directory,
      worktree,
      experimental_workspace: { register() {} },
      get serverUrl() {
        return new URL(server)
      },
      $: Bun.$,
    }
    const failed = []
    for (const f of functions) {
      send({ id: m.id, progress: {} })
      try {
        const hooks = await f(input, options)
        if (hooks && typeof hooks === "object") entry.instances.push(hooks)
      } catch (e) {
        failed.push(e)
      }
    }
    // A helper that is exported beside the plugin is called like one, and may not like it.
    if (failed.length && (functions.length === 1 || !entry.instances.length)) throw failed[0]
    notes.push(...failed.map((e) => `one of its exports failed: ${textOf(e)}`))
  }
  const hooks = new Set()
  for (const all of entry.instances) {
    for (const key of Object.keys(all)) if (typeof all[key] === "function") hooks.add(key)
    for (const [name, def] of Object.entries(all.tool ?? {})) {
      try {
        entry.tools.set(name, toolOf(name, def, entry.dir))
      } catch (e) {
        notes.push(`its tool ${name} was left out: ${textOf(e)}`)
      }
    }
  }
  const tools = [...entry.tools.values()].map(({ name, description, schema }) => ({ name, description, schema }))
  return { hooks: [...hooks], tools, notes }
}

// ---- schemas: zod 4, zod 3, or JSON schemas as they are

const isZod = (v) => typeof v?.safeParse === "function" && (v._zod || v._def)

function toolOf(name, def, dir) {
  if (typeof def?.execute !== "function") throw new TypeError("it has no execute function")
  let args = def.args ?? def.parameters ?? {}
  if (isZod(args)) args = shapeOf(args) ?? {}
  const known = ["type", "properties", "required", "additionalProperties", "description", "$schema", "$defs"]
  const whole = args.type === "object" && Object.keys(args).every((key) => known.includes(key))
  const tool = { name, description: String(def.description ?? ""), execute: def.execute.bind(def), args: whole ? null : args }
  if (whole) return { ...tool, schema: args }
  const schema = { type: "object", properties: {}, required: [] }
  for (const [key, value] of Object.entries(args)) {
    if (isZod(value)) {
      schema.properties[key] = schemaOf(value, dir)
      if (!isOptional(value)) schema.required.push(key)
    } else {
      const { required, ...rest } = value && typeof value === "object" ? value : {}
      schema.properties[key] = Array.isArray(required) ? { ...rest, required } : rest
      if (required === true) schema.required.push(key)
    }
  }
  return { ...tool, schema }
}

const defOf = (s) => s._zod?.def ?? s._def
const shapeOf = (s) => (typeof defOf(s).shape === "function" ? defOf(s).shape() : defOf(s).shape)
const isOptional = (s) => (s._zod ? s._zod.optin === "optional" || s._zod.optin === "defaulted" : s.isOptional())

function schemaOf(s, dir) {
  if (s._zod) {
    for (const from of [dir, fallback.dir])
      for (const name of ["zod/v4", "zod"]) {
        const file = resolved(name, from)
        try {
          const { $schema, ...schema } = (file && require(file)).toJSONSchema(s, { io: "input", unrepresentable: "any" })
          if (!JSON.stringify(schema).includes('"$ref"')) return schema
        } catch {}
      }
  }
  return described(s, 0)
}

const described = (s, depth) => {
  const schema = depth > 20 ? {} : plainly(s, depth + 1)
  return s.description ? { ...schema, description: s.description } : schema
}

// plainly converts what no zod was found for, and zod 3, which cannot convert its schemas.
function plainly(s, depth) {
  const def = defOf(s)
  const inner = (v) => described(v, depth)
  switch (String(def.typeName ?? def.type).replace(/^Zod/, "").toLowerCase()) {
    case "string":
    case "boolean":
      return { type: String(def.typeName ?? def.type).replace(/^Zod/, "").toLowerCase() }
    case "number":
      return { type: s.isInt ? "integer" : "number" }
    case "bigint":
      return { type: "integer" }
    case "date":
      return { type: "string", format: "date-time" }
    case "null":
      return { type: "null" }
    case "array":
      return { type: "array", items: inner(def.element ?? def.type) }
    case "set":
      return { type: "array", items: inner(def.valueType) }
    case "tuple":
      return { type: "array", prefixItems: def.items.map(inner) }
    case "record":
      return { type: "object", additionalProperties: inner(def.valueType) }
    case "enum":
    case "nativeenum": {
      const values = def.entries ?? def.values
      return { enum: Array.isArray(values) ? values : Object.values(values).filter((v) => typeof values[v] !== "number") }
    }
    case "literal":
      return { enum: def.values ?? [def.value] }
    case "union":
    case "discriminatedunion":
      return { anyOf: [...(def.options.values?.() ?? def.options)].map(inner) }
    case "intersection":
      return { allOf: [inner(def.left), inner(def.right)] }
    case "nullable":
      return { anyOf: [inner(def.innerType), { type: "null" }] }
    case "object": {
      const shape = Object.entries(shapeOf(s))
      const required = shape.filter(([, v]) => !isOptional(v)).map(([key]) => key)
      return { type: "object", properties: Object.fromEntries(shape.map(([key, v]) => [key, inner(v)])), required }
    }
  }
  const within = def.innerType ?? def.schema ?? def.in ?? (typeof def.type === "object" ? def.type : undefined)
  return within ? inner(within) : {}
}

class InvalidArguments extends Error {}

async function argumentsOf(tool, given) {
  const wrong = []
  let out = given
  if (tool.args && Object.values(tool.args).some(isZod)) {
    out = {}
    for (const [key, schema] of Object.entries(tool.args)) {
      if (!isZod(schema)) {
        if (key in given) out[key] = given[key]
        continue
      }
      const r = await (schema.safeParseAsync ?? schema.safeParse).call(schema, given[key])
      if (!r.success) wrong.push(...r.error.issues.map((i) => `${[key, ...i.path].join(".")}: ${i.message}`))
      else if (r.data !== undefined) out[key] = r.data
    }
    for (const [key, schema] of Object.entries(tool.schema.properties)) if (!isZod(tool.args[key]) && key in given) check(schema, given[key], key, wrong)
  } else check(tool.schema, given, "", wrong)
  if (wrong.length) throw new InvalidArguments("the arguments are wrong: " + wrong.slice(0, 10).join("; "))
  return out
}

// check looks at types, enums and what is required; a tool with a schema of its own checks the rest itself, as under OpenCode.
function check(schema, value, at, wrong) {
  const is = { string: "string", boolean: "boolean", number: "number", integer: "number", object: "object" }
  const types = [schema?.type ?? []].flat()
  const fits = (t) => (t === "array" ? Array.isArray(value) : t === "null" ? value === null : value !== null && !Array.isArray(value) && typeof value === (is[t] ?? typeof value) && (t !== "integer" || Number.isInteger(value)))
  if (types.length && !types.some(fits)) wrong.push(`${at || "it"}: expected ${types.join(" or ")}`)
  else if (schema?.enum && !schema.enum.includes(value)) wrong.push(`${at}: expected one of ${JSON.stringify(schema.enum)}`)
  else if (value && typeof value === "object" && !Array.isArray(value)) {
    for (const key of schema?.required ?? []) if (!(key in value)) wrong.push(`${at ? at + "." : ""}${key}: missing`)
    for (const [key, inner] of Object.entries(schema?.properties ?? {})) if (key in value) check(inner, value[key], at ? `${at}.${key}` : key, wrong)
  }
}

// ---- what the host asks for

const entryOf = (m) => {
  const entry = plugins.get(m.plugin)
  if (!entry) throw new Error("there is no such plugin here")
  return entry
}

async function hook(m) {
  const { hook, input, output } = m.params
  const before = JSON.stringify(output)
  for (const all of entryOf(m).instances) {
    if (typeof all[hook] !== "function") continue
    if (hook === "config") await all[hook](output)
    else await all[hook](input, output)
  }
  const after = JSON.stringify(output)
  return after === before ? {} : { output }
}

async function tool(m) {
  const tool = entryOf(m).tools.get(m.params.tool)
  if (!tool) throw new InvalidArguments("there is no such tool")
  const call = { stop: new AbortController(), asks: new Map() }
  running.set(m.id, call)
  try {
    const args = await argumentsOf(tool, m.params.args ?? {})
    const shown = { title: undefined, metadata: undefined }
    let timer
    const show = () => {
      timer = undefined
      if (running.has(m.id)) send({ id: m.id, progress: shown })
    }
    const r = await tool.execute(args, {
      ...m.params.context,
      abort: call.stop.signal,
      messages: [],
      extra: {},
      metadata(x) {
        shown.title = x?.title ?? shown.title
        shown.metadata = { ...shown.metadata, ...x?.metadata }
        timer ??= setTimeout(show, 50)
      },
      ask: (x) =>
        new Promise((allow, refuse) => {
          const n = call.asks.size + 1
          call.asks.set(n, (error) => (error ? refuse(new Error(error)) : allow()))
          send({ id: m.id, ask: x, n })
        }),
    })
    const { output, title, metadata, attachments } = r && typeof r === "object" && "output" in r ? r : { output: r }
    const text = output === undefined || output === null ? "" : typeof output === "string" ? output : JSON.stringify(output)
    return { text, title: title ?? shown.title, metadata: { ...shown.metadata, ...metadata }, attachments }
  } finally {
    running.delete(m.id)
  }
}

// events does not wait for handlers: one may wait for the end of a turn, whose events come after this one.
function events(m) {
  send({ id: m.id, progress: {} })
  for (const event of m.params.events)
    for (const all of entryOf(m).instances)
      if (typeof all.event === "function")
        Promise.try(() => all.event({ event })).catch((e) => send({ fault: textOf(e), plugin: m.plugin }))
  return {}
}

async function dispose(m) {
  for (const all of entryOf(m).instances) await all.dispose?.()
  return {}
}

const todo = { init, hook, tool, events, dispose, ping: () => ({}) }

async function handle(line) {
  const m = JSON.parse(line)
  if (m.do === "abort") return running.get(m.id)?.stop.abort()
  if (m.do === "fetched") return host?.fetched(m.params)
  if (m.do === "answer") return running.get(m.id)?.asks.get(m.params.n)?.(m.params.error)
  await current.run(m.plugin, async () => {
    let answer
    try {
      if (!Object.hasOwn(todo, m.do)) throw new Error(`unknown message ${m.do}`)
      answer = JSON.stringify({ id: m.id, result: await todo[m.do](m) })
    } catch (e) {
      answer = JSON.stringify({ id: m.id, error: textOf(e), kind: e instanceof InvalidArguments ? "arguments" : undefined })
    }
    say(answer)
  })
}

keepPluginsFromOurStreams()
const decoder = new TextDecoder()
let parts = []
for await (const chunk of Bun.stdin.stream()) {
  const [first, ...more] = decoder.decode(chunk, { stream: true }).split("\n")
  parts.push(first)
  for (const part of more) {
    const line = parts.join("")
    parts = [part]
    if (line.trim()) void handle(line)
  }
}
exit(0)
