// Sessions as things with a title: made, read, listed, renamed, archived, deleted, with children.
import { check, directory, eventually, idle, Log, ok, other, at, prompt, raw, refused, same, session, shape, test, v1, v2, words } from './harness.mjs'

const zero = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }
const aSession = { id: /^ses_[0-9a-f]{12}[0-9A-Za-z]{14}$/, slug: /^[a-z0-9-]+$/, projectID: String, directory, version: String, title: String,
  cost: 0, tokens: zero, time: { created: Number, updated: Number } }
const gone = id => refused(v2.session.get({ sessionID: id }), 404, 'NotFoundError')
const primary = async () => (await ok(v2.app.agents())).find(a => a.mode !== 'subagent' && !a.hidden).name

test('session.create (v1) without a body', async t => {
  const s = await ok(v1.session.create())
  t.after(() => v1.session.delete({ path: { id: s.id } }))
  shape(s, { ...aSession, title: /^New session - \d{4}-\d\d-\d\dT/ }, 'session')
  check(!('parentID' in s), 'a root has a parentID', s)
})

test('session.create (v1) with a title', async t => {
  const s = await ok(v1.session.create({ body: { title: 'Named by v1' } }))
  t.after(() => v1.session.delete({ path: { id: s.id } }))
  shape(s, { ...aSession, title: 'Named by v1' }, 'session')
})

test('session.create (v2) with agent and model', async t => {
  const agent = await primary()
  const s = await session(t, { title: 'with agent', agent, model: { providerID: 'fake', id: 'fake-1' } })
  shape(s, { ...aSession, agent, model: { id: 'fake-1', providerID: 'fake' } }, 'session')
})

test('session.create: newer sessions have smaller ids', async t => {
  const [a, b] = [await session(t), await session(t)]
  check(b.id < a.id, 'ids do not descend', [a.id, b.id])
})

test('session.create becomes an event', async t => {
  const log = await Log.v2(t)
  const s = await session(t, { title: 'seen' })
  const e = await log.until(e => e.type === 'session.created' && e.properties.sessionID === s.id, 'session.created')
  shape(e, { id: /^evt_/, properties: { sessionID: s.id, info: { id: s.id, title: 'seen', directory } } }, 'event')
})

test('session.children (v1) lists a child', async t => {
  const parent = await session(t)
  const child = await session(t, { parentID: parent.id, title: 'a child' })
  shape(child, { ...aSession, parentID: parent.id, title: 'a child' }, 'child')
  same((await ok(v1.session.children({ path: { id: parent.id } }))).map(s => s.id), [child.id], 'children')
})

test('session.children (v2) of none is empty', async t => {
  const s = await session(t)
  same(await ok(v2.session.children({ sessionID: s.id })), [], 'children')
})

test('session.get (v1) is what create returned', async t => {
  const s = await session(t)
  same(await ok(v1.session.get({ path: { id: s.id } })), s, 'session')
})

test('session.get (v2) is what create returned', async t => {
  const s = await session(t)
  same(await ok(v2.session.get({ sessionID: s.id })), s, 'session')
})

test('session.list (v1) has the session', async t => {
  const s = await session(t)
  const got = await ok(v1.session.list())
  shape(got.find(x => x.id === s.id), { ...aSession, title: s.title }, 'listed session')
})

test('session.list (v2) begins with what changed last', async t => {
  const [a, b] = [await session(t), await session(t)]
  await prompt(a, 'say something new')
  const got = (await ok(v2.session.list())).map(s => s.id)
  check(got.indexOf(a.id) >= 0 && got.indexOf(a.id) < got.indexOf(b.id), 'the older session has worked last and is not first', got.slice(0, 5))
})

test('session.list (v2) of roots has no children', async t => {
  const parent = await session(t)
  const child = await session(t, { parentID: parent.id })
  const got = (await ok(v2.session.list({ roots: true }))).map(s => s.id)
  check(got.includes(parent.id) && !got.includes(child.id), 'not the roots', got)
})

test('session.list (v2) searches titles', async t => {
  const s = await session(t, { title: 'Zebra crossing' })
  await session(t)
  same((await ok(v2.session.list({ search: 'zebra' }))).map(x => x.id), [s.id], 'found')
})

test('session.list (v2) keeps to its limit', async t => {
  await session(t)
  const b = await session(t)
  same((await ok(v2.session.list({ limit: 1 }))).map(x => x.id), [b.id], 'sessions')
})

test('session.list (v2) from a time', async t => {
  const s = await session(t)
  same(await ok(v2.session.list({ start: s.time.updated + 3_600_000 })), [], 'sessions of the future')
  check((await ok(v2.session.list({ start: s.time.updated }))).some(x => x.id === s.id), 'the session is missing')
})

test('session.list (v2) of another directory', async t => {
  const s = await session(t)
  const there = await ok(at(other).session.create({ title: 'there' }))
  t.after(() => at(other).session.delete({ sessionID: there.id }))
  same(there.directory, other, 'directory')
  const [here, theirs] = [await ok(v2.session.list()), await ok(at(other).session.list())].map(l => l.map(x => x.id))
  check(here.includes(s.id) && !here.includes(there.id), 'the other session is listed here', here)
  check(theirs.includes(there.id) && !theirs.includes(s.id), 'the session is listed there', theirs)
}, { skip: other ? '' : 'no OTHER_DIRECTORY' })

test('the directory may be in the query or in the header', async t => {
  const s = await session(t)
  const query = await raw('GET', '/session?directory=' + encodeURIComponent(directory), undefined, { 'x-opencode-directory': '' })
  const header = await raw('GET', '/session')
  for (const got of [query, header]) check(got.body.some(x => x.id === s.id), 'the session is not listed', got.text)
})

test('session.update (v1) changes the title', async t => {
  const log = await Log.v1(t)
  const s = await session(t)
  shape(await ok(v1.session.update({ path: { id: s.id }, body: { title: 'renamed' } })), { id: s.id, title: 'renamed' }, 'answer')
  shape(await ok(v1.session.get({ path: { id: s.id } })), { title: 'renamed' }, 'session')
  await log.until(e => e.type === 'session.updated' && e.properties.info.id === s.id && e.properties.info.title === 'renamed', 'session.updated')
})

test('session.update (v2) archives', async t => {
  const s = await session(t)
  const when = Date.now()
  shape(await ok(v2.session.update({ sessionID: s.id, time: { archived: when } })), { time: { archived: when } }, 'answer')
  shape(await ok(v2.session.get({ sessionID: s.id })), { time: { archived: when } }, 'session')
})

test('session.delete (v1) with its event', async t => {
  const log = await Log.v1(t)
  const s = await session(t)
  same(await ok(v1.session.delete({ path: { id: s.id } })), true, 'answer')
  await gone(s.id)
  await log.until(e => e.type === 'session.deleted' && e.properties.info.id === s.id, 'session.deleted')
  check(!(await ok(v1.session.list())).some(x => x.id === s.id), 'the session is still listed')
})

test('session.delete (v2) takes the children with it', async t => {
  const parent = await session(t)
  const child = await session(t, { parentID: parent.id })
  same(await ok(v2.session.delete({ sessionID: parent.id })), true, 'answer')
  await gone(parent.id)
  await gone(child.id)
})

test('session.status (v1) has only sessions that work', async t => {
  const [busy, still] = [await session(t), await session(t)]
  await ok(v1.session.promptAsync({ path: { id: busy.id }, body: { parts: words('slow 60') } }))
  const got = await eventually(() => ok(v1.session.status()), all => all[busy.id], 'the session does not become busy')
  same(got[busy.id], { type: 'busy' }, 'status')
  check(!(still.id in got), 'an idle session has a status', got)
  await ok(v1.session.abort({ path: { id: busy.id } }))
  await idle(busy)
})

test('session.status (v2) is empty for idle sessions', async t => {
  const s = await session(t)
  await prompt(s, 'say done')
  check(!(s.id in await ok(v2.session.status())), 'the session is not idle after its answer')
})
