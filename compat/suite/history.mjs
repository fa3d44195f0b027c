// What is done with a conversation: pages, forks, reverts, summaries, commands and shells.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { check, directory, eventually, Log, messages, model, ok, prompt, refused, same, session, shape, test, textOf, toolParts, v1, v2, words } from './harness.mjs'

// talk makes a session with so many prompts and answers.
async function talk(t, n, more = {}) {
  const s = await session(t, { title: 'a talk', ...more })
  for (let i = 1; i <= n; i++) await prompt(s, 'say answer ' + i)
  return s
}
const texts = list => list.map(textOf)

test('session.messages (v1) are in order', async t => {
  const s = await talk(t, 2)
  const got = await ok(v1.session.messages({ path: { id: s.id } }))
  same(texts(got), ['say answer 1', 'answer 1', 'say answer 2', 'answer 2'], 'texts')
  same(got.map(m => m.info.role), ['user', 'assistant', 'user', 'assistant'], 'roles')
  const ids = got.map(m => m.info.id)
  same([...ids].sort(), ids, 'ids sort as the messages')
  shape(got[0].info, { sessionID: s.id, agent: String, model, time: { created: Number } }, 'message of the user')
  for (const m of got) for (const p of m.parts) shape(p, { id: /^prt_/, messageID: m.info.id, sessionID: s.id }, 'part')
})

test('session.messages (v2) of an empty session are none', async t => {
  same(await messages(await session(t)), [], 'messages')
})

test('session.messages (v2) with a limit are the newest', async t => {
  const s = await talk(t, 2)
  same(texts(await messages(s, { limit: 2 })), ['say answer 2', 'answer 2'], 'texts')
  same((await messages(s, { limit: 100 })).length, 4, 'messages')
})

test('session.messages (v2) before a cursor are the older ones', async t => {
  const s = await talk(t, 2)
  const { data, response } = await v2.session.messages({ sessionID: s.id, limit: 3 })
  same(texts(data), ['answer 1', 'say answer 2', 'answer 2'], 'newest')
  const cursor = response.headers.get('x-next-cursor')
  check(cursor, 'no x-next-cursor')
  check(/rel="next"/.test(response.headers.get('link') ?? ''), 'no link to the next page', response.headers.get('link'))
  const next = await v2.session.messages({ sessionID: s.id, limit: 3, before: cursor })
  same(texts(await ok(next)), ['say answer 1'], 'older')
  same(next.response.headers.get('x-next-cursor'), null, 'cursor of the last page')
})

test('session.messages (v2) before nonsense is 400', async t => {
  const s = await talk(t, 1)
  await refused(v2.session.messages({ sessionID: s.id, limit: 2, before: 'nonsense' }), 400)
})

test('session.message (v1) is the one of the list', async t => {
  const s = await talk(t, 1)
  const list = await messages(s)
  for (const m of list) same(await ok(v1.session.message({ path: { id: s.id, messageID: m.info.id } })), m, 'message')
})

test('session.message (v2) that is unknown is 404', async t => {
  const s = await session(t)
  await refused(v2.session.message({ sessionID: s.id, messageID: 'msg_000000000001AAAAAAAAAAAAAA' }), 404, 'NotFoundError')
})

test('session.fork (v1) copies what stands before the message', async t => {
  const s = await talk(t, 3)
  const list = await messages(s)
  const f = await ok(v1.session.fork({ path: { id: s.id }, body: { messageID: list[4].info.id } }))
  t.after(() => v1.session.delete({ path: { id: f.id } }))
  shape(f, { id: id => /^ses_/.test(id) && id !== s.id, title: 'a talk (fork #1)', directory }, 'fork')
  check(!f.parentID, 'a fork is no child', f)
  const copied = await messages(f)
  same(texts(copied), texts(list.slice(0, 4)), 'texts')
  check(copied.every(m => m.info.sessionID === f.id && !list.some(o => o.info.id === m.info.id)), 'messages are not the copies own', copied)
  same(texts(await messages(s)), texts(list), 'the session that was forked')
})

test('session.fork (v2) without a message copies all', async t => {
  const s = await talk(t, 1)
  const f = await ok(v2.session.fork({ sessionID: s.id }))
  t.after(() => v2.session.delete({ sessionID: f.id }))
  same(texts(await messages(f)), ['say answer 1', 'answer 1'], 'texts')
  same(textOf(await prompt(f, 'say further')), 'further', 'answer in the fork')
  same((await messages(s)).length, 2, 'messages of the session that was forked')
})

test('session.revert (v1) and unrevert', async t => {
  const log = await Log.v1(t)
  const s = await talk(t, 2)
  const list = await messages(s)
  const id = list[2].info.id
  shape(await ok(v1.session.revert({ path: { id: s.id }, body: { messageID: id } })), { id: s.id, revert: { messageID: id } }, 'reverted session')
  shape(await ok(v1.session.get({ path: { id: s.id } })), { revert: { messageID: id } }, 'session')
  await log.until(e => e.type === 'session.updated' && e.properties.info.id === s.id && e.properties.info.revert?.messageID === id, 'session.updated')
  const back = await ok(v1.session.unrevert({ path: { id: s.id } }))
  check(back.id === s.id && !back.revert, 'revert remains', back)
  same(texts(await messages(s)), texts(list), 'messages')
})

test('session.revert (v2): the next prompt removes what was reverted', async t => {
  const s = await talk(t, 2)
  const list = await messages(s)
  await ok(v2.session.revert({ sessionID: s.id, messageID: list[2].info.id }))
  await prompt(s, 'say instead')
  same(texts(await messages(s)), ['say answer 1', 'answer 1', 'say instead', 'instead'], 'texts')
  const now = await ok(v2.session.get({ sessionID: s.id }))
  check(!now.revert, 'revert remains', now)
})

test('session.revert (v2) brings files back, unrevert undoes it', async t => {
  const s = await session(t), file = path.join(directory, 'reverted.txt')
  t.after(() => rmSync(file, { force: true }))
  await prompt(s, 'write reverted.txt by the model')
  const [user] = await messages(s)
  const got = await ok(v2.session.revert({ sessionID: s.id, messageID: user.info.id }))
  check(!existsSync(file), 'the file is still there')
  shape(got.revert, { messageID: user.info.id }, 'revert')
  await ok(v2.session.unrevert({ sessionID: s.id }))
  same(readFileSync(file, 'utf8'), 'by the model\n', 'file')
})

test('session.revert (v2) of an unknown message leaves the session', async t => {
  const s = await talk(t, 1)
  const { response } = await v2.session.revert({ sessionID: s.id, messageID: 'msg_000000000001AAAAAAAAAAAAAA' })
  check([200, 404].includes(response.status), 'status', response.status)
  check(!(await ok(v2.session.get({ sessionID: s.id }))).revert, 'the session is reverted')
})

test('session.revert (v2) during an answer is 409', async t => {
  const s = await session(t)
  await ok(v2.session.promptAsync({ sessionID: s.id, parts: words('slow 60') }))
  await eventually(() => messages(s), l => l.length === 2, 'no answer begins')
  const [user] = await messages(s)
  const error = await refused(v2.session.revert({ sessionID: s.id, messageID: user.info.id }), 409)
  shape(error, { _tag: 'SessionBusyError', sessionID: s.id, message: String }, 'error')
  await ok(v2.session.abort({ sessionID: s.id }))
})

test('session.summarize (v1) adds a summary', async t => {
  const log = await Log.v1(t)
  const s = await talk(t, 2)
  same(await ok(v1.session.summarize({ path: { id: s.id }, body: model })), true, 'answer')
  await log.until(e => e.type === 'session.compacted' && e.properties.sessionID === s.id, 'session.compacted')
  const list = await messages(s)
  check(list.some(m => m.parts.some(p => p.type === 'compaction')), 'no compaction part', list.map(m => m.parts.map(p => p.type)))
  const summary = list.find(m => m.info.summary === true && m.info.role === 'assistant')
  check(summary && textOf(summary).length > 0, 'no summary', list.map(m => m.info))
  same(textOf(await prompt(s, 'say after it')), 'after it', 'next answer')
})

// The last number stands for all arguments that are left.
test('session.command (v1) expands the template', async t => {
  const log = await Log.v1(t)
  const s = await session(t)
  const m = await ok(v1.session.command({ path: { id: s.id }, body: { command: 'greet', arguments: 'Ada King Lovelace' } }))
  shape(m.info, { role: 'assistant', sessionID: s.id, finish: 'stop' }, 'info')
  same(textOf(m), 'hello Ada King Lovelace, first Ada, then King Lovelace', 'text')
  const e = await log.until(e => e.type === 'command.executed', 'command.executed')
  shape(e.properties, { name: 'greet', sessionID: s.id, arguments: 'Ada King Lovelace', messageID: /^msg_/ }, 'command.executed')
})

test('session.command (v2) with agent and model', async t => {
  const s = await session(t)
  const agent = (await ok(v2.app.agents())).find(a => a.mode !== 'subagent' && !a.hidden).name
  const m = await ok(v2.session.command({ sessionID: s.id, command: 'greet', arguments: 'Bob Ross', agent, model: 'fake/fake-1' }))
  same([textOf(m), m.info.agent], ['hello Bob Ross, first Bob, then Ross', agent], 'text and agent')
})

test('session.shell (v1) is a tool part without the model', async t => {
  const s = await session(t)
  const agent = (await ok(v1.app.agents())).find(a => a.mode !== 'subagent' && !a.hidden).name
  const m = await ok(v1.session.shell({ path: { id: s.id }, body: { agent, command: 'echo from-the-shell' } }))
  shape(m.info ?? m, { role: 'assistant', sessionID: s.id, time: { created: Number, completed: Number } }, 'info')
  const list = await messages(s)
  same(list.map(x => x.info.role), ['user', 'assistant'], 'roles')
  shape(toolParts(list)[0], { tool: 'bash', state: { status: 'completed', input: { command: 'echo from-the-shell' }, output: /from-the-shell/ } }, 'tool part')
  check(list[0].parts.every(p => p.synthetic), 'the text of the user is not marked as made up', list[0].parts)
})

test('session.shell (v2) with an exit code', async t => {
  const s = await session(t)
  const agent = (await ok(v2.app.agents())).find(a => a.mode !== 'subagent' && !a.hidden).name
  const m = await ok(v2.session.shell({ sessionID: s.id, agent, command: 'echo before; exit 3' }))
  shape(toolParts([m])[0], { tool: 'bash', state: { status: 'completed', output: /before/ } }, 'tool part')
})

test('what a shell printed is known to the model', async t => {
  const s = await session(t)
  const agent = (await ok(v2.app.agents())).find(a => a.mode !== 'subagent' && !a.hidden).name
  await ok(v2.session.shell({ sessionID: s.id, agent, command: 'echo known' }))
  same(textOf(await prompt(s, 'say I know')), 'I know', 'text')
})
