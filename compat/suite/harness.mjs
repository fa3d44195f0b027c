// What all tests of the suite use: the two clients, a runner, checks with clear messages, and a collector of events.
import { createOpencodeClient as createV1 } from '@opencode-ai/sdk'
import { createOpencodeClient as createV2 } from '@opencode-ai/sdk/v2'
import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'

export const target = process.env.TARGET ?? 'opencode'
export const ours = target === 'centurion'
export const base = (process.env.BASE_URL ?? '').replace(/\/+$/, '')
export const directory = process.env.DIRECTORY
export const other = process.env.OTHER_DIRECTORY
export const model = { providerID: 'fake', modelID: 'fake-1' }
if (!base || !directory) {
  console.error('BASE_URL and DIRECTORY are needed; see compat/run.sh')
  process.exit(2)
}

// Requests that have been made, and the routes they went to: a suite that silently makes none would pass.
export const made = { calls: 0, routes: new Set() }
const callTimeout = 60_000

function counted(request) {
  const path = new URL(request.url).pathname.slice(new URL(base).pathname.replace(/\/$/, '').length)
  made.calls++
  made.routes.add(request.method + ' ' + path.replace(/(ses|msg|prt|per|que)_[^/]+/g, '$1'))
  if (path.endsWith('/event')) return fetch(request) // a stream lasts
  return fetch(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(callTimeout)]) })
}

export const v1 = createV1({ baseUrl: base, directory, fetch: counted })
export const v2 = createV2({ baseUrl: base, directory, fetch: counted })
export const at = dir => createV2({ baseUrl: base, directory: dir, fetch: counted })

// raw sends what the clients cannot: broken bodies and requests without their headers.
export async function raw(method, path, body, headers = {}) {
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  const response = await counted(new Request(base + path, { method, body: text,
    headers: { 'content-type': 'application/json', 'x-opencode-directory': encodeURIComponent(directory), ...headers } }))
  const answer = await response.text()
  let value
  try { value = JSON.parse(answer) } catch { /* the text says it */ }
  return { status: response.status, headers: response.headers, text: answer, body: value }
}

export const sleep = ms => new Promise(done => setTimeout(done, ms))

// --- checks

const show = value => {
  const s = typeof value === 'string' ? value : JSON.stringify(value)
  return s === undefined ? 'undefined' : s.length > 600 ? s.slice(0, 600) + '...' : s
}

export class Failed extends Error {}
export function fail(message) { throw new Failed(message) }
export function check(condition, what, value) {
  if (!condition) fail(what + (value === undefined ? '' : ': ' + show(value)))
}
export function same(got, want, what) {
  if (!isDeepStrictEqual(got, want)) fail(`${what}: ${show(got)}, not ${show(want)}`)
}

// shape checks a value against a pattern: a pattern's keys must be there, further keys may be. A regular expression is for texts, a
// function decides itself, a class or 'array' names a type.
export function shape(got, want, what) {
  if (want === String || want === Number || want === Boolean) {
    return check(typeof got === want.name.toLowerCase(), `${what} is no ${want.name.toLowerCase()}`, got ?? null)
  }
  if (want === Array) return check(Array.isArray(got), `${what} is no array`, got ?? null)
  if (want === Object) return check(got && typeof got === 'object' && !Array.isArray(got), `${what} is no object`, got ?? null)
  if (want instanceof RegExp) return check(typeof got === 'string' && want.test(got), `${what} does not match ${want}`, got ?? null)
  if (typeof want === 'function') return check(want(got), `${what} is not as expected`, got ?? null)
  if (want && typeof want === 'object' && !Array.isArray(want)) {
    check(got && typeof got === 'object', `${what} is no object`, got ?? null)
    for (const key of Object.keys(want)) shape(got[key], want[key], `${what}.${key}`)
    return
  }
  same(got, want, what)
}

// ok returns the data of a client's answer, or fails with the server's words.
export async function ok(answer) {
  const { data, error, response } = await answer
  if (error !== undefined || !response?.ok) fail(`${response?.status} ${response?.url}: ${show(error)}`)
  return data
}

// refused checks that a client's call is answered with one of the statuses, and returns what the server says.
export async function refused(answer, status, name) {
  const { error, response } = await answer
  const statuses = [status].flat()
  check(statuses.includes(response?.status), `status ${response?.status} ${response?.url}, not ${statuses.join(' or ')}`, error ?? null)
  if (name) shape(error, { name, data: { message: String } }, 'error')
  return error
}

// --- tests

const tests = []
export const test = (name, run, options = {}) => tests.push({ name, run, ...options })

// What our server does not do yet. Each name has to be that of a test, so that the list does not outlive what it names.
const later = ours ? JSON.parse(readFileSync(new URL('../later.json', import.meta.url))).tests : []

export async function runAll(patterns) {
  const unknown = later.filter(name => !tests.some(t => t.name === name))
  check(unknown.length === 0, 'compat/later.json names no test', unknown)
  const chosen = tests.filter(t => patterns.length === 0 || patterns.some(p => new RegExp(p, 'i').test(t.name)))
  const failed = [], end = Date.now() + 30 * 60_000 // a server that answers nothing would take hours
  let skipped = 0
  for (const [i, t] of chosen.entries()) {
    const start = Date.now(), cleanup = []
    const label = `${i + 1}/${chosen.length} ${t.name}`
    const skip = t.skip || (later.includes(t.name) && patterns.length === 0 && 'not there yet')
    if (skip) {
      skipped++
      console.log(`skip ${label}: ${skip}`)
      continue
    }
    try {
      check(Date.now() < end, 'not begun: the suite has taken 30 minutes')
      const timeout = t.timeout ?? 90_000
      let timer
      const late = new Promise((_, no) => { timer = setTimeout(() => no(new Failed(`not done after ${timeout / 1000} s`)), timeout) })
      await Promise.race([t.run({ after: f => cleanup.push(f) }), late]).finally(() => clearTimeout(timer))
      console.log(`ok   ${label} (${Date.now() - start} ms)`)
    } catch (e) {
      failed.push(t.name)
      console.log(`FAIL ${label}: ${e instanceof Failed ? e.message : e.stack}`)
    }
    for (const f of cleanup.reverse()) await Promise.resolve().then(f).catch(() => {})
  }
  for (const name of failed) console.log('failed: ' + name)
  console.log(`${chosen.length} tests, ${failed.length} failed, ${skipped} skipped; ${made.calls} calls to ${made.routes.size} routes of ${target}`)
  return failed.length === 0 && chosen.length > 0
}

// ready waits until the server answers: OpenCode's own sometimes leaves the first requests without an answer.
export async function ready() {
  for (let i = 0; i < 30; i++) {
    try {
      const r = await fetch(`${base}/path?directory=${encodeURIComponent(directory)}`, { signal: AbortSignal.timeout(5000) })
      if (r.ok) return
    } catch { /* again */ }
    await sleep(500)
  }
  fail('the server does not answer GET /path')
}

// --- events

// A Log keeps the events of one subscription and waits for those that are to come.
export class Log {
  events = []
  #waiting = []
  #stop = new AbortController()

  static async v1(t) { return new Log().#open(t, await v1.event.subscribe()) }
  static async v2(t, client = v2) { return new Log().#open(t, await client.event.subscribe()) }
  static async global(t) { return new Log().#open(t, await v2.global.event()) }

  async #open(t, { stream }) {
    t.after(() => { this.#stop.abort(); stream.return?.() })
    const read = async () => {
      for await (const event of stream) {
        if (this.#stop.signal.aborted) return
        this.events.push(event)
        for (const w of this.#waiting.splice(0)) w()
      }
    }
    read().catch(() => {})
    await this.until(e => (e.payload ?? e).type === 'server.connected', 'server.connected')
    if (!ours) await sleep(500) // OpenCode says that before it listens itself
    return this
  }

  // until waits for the first event that fits and returns it.
  async until(fits, what, timeout = 30_000) {
    const end = Date.now() + timeout
    for (;;) {
      const found = this.events.find(fits)
      if (found) return found
      const left = end - Date.now()
      if (left <= 0) {
        const types = this.events.map(e => (e.payload ?? e).type).slice(-20)
        fail(`no event ${what} within ${timeout / 1000} s; the last ones were ${types.join(' ')}`)
      }
      let timer
      await Promise.race([new Promise(done => this.#waiting.push(done)), new Promise(done => { timer = setTimeout(done, left) })])
      clearTimeout(timer)
    }
  }

  of(sessionID) { return this.events.filter(e => sessionOf(e.payload ?? e) === sessionID) }
  idle(sessionID) { return this.until(e => (e.payload ?? e).type === 'session.idle' && sessionOf(e.payload ?? e) === sessionID, 'session.idle') }
}

export const sessionOf = e => e.properties?.sessionID ?? e.properties?.info?.sessionID ?? e.properties?.part?.sessionID

// --- short forms

// session makes a session that is deleted when the test ends.
export async function session(t, body = { title: 'a test' }) {
  const s = await ok(v2.session.create(body))
  t.after(() => v2.session.abort({ sessionID: s.id }).then(() => v2.session.delete({ sessionID: s.id })))
  return s
}

export const words = text => [{ type: 'text', text }]
export const prompt = (s, text, more = {}) => ok(v2.session.prompt({ sessionID: s.id, parts: words(text), ...more }))
export const textOf = message => message.parts.filter(p => p.type === 'text').map(p => p.text).join('')
export const messages = (s, more = {}) => ok(v2.session.messages({ sessionID: s.id, ...more }))
export const toolParts = list => list.flatMap(m => m.parts).filter(p => p.type === 'tool')

// eventually asks again until the value fits: some facts arrive a moment after the answer.
export async function eventually(ask, fits, what, timeout = 15_000) {
  const end = Date.now() + timeout
  let value
  do {
    value = await ask()
    if (fits(value)) return value
    await sleep(200)
  } while (Date.now() < end)
  fail(`${what}: ${show(value)} after ${timeout / 1000} s`)
}

export const idle = s => eventually(() => ok(v2.session.status()), all => !all[s.id], 'the session is not idle')
