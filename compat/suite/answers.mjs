// Prompts and what comes back: texts, thoughts, tools, aborts, several at once.
import { readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { check, directory, eventually, idle, Log, messages, model, ok, ours, prompt, refused, same, session, shape, test, textOf, toolParts, v1, v2, words } from './harness.mjs'

const counts = { input: Number, output: Number, reasoning: Number, cache: { read: Number, write: Number } }
const ids = m => ({ id: /^prt_/, messageID: m.info.id, sessionID: m.info.sessionID })
const anAnswer = s => ({ id: /^msg_[0-9a-f]{12}[0-9A-Za-z]{14}$/, sessionID: s.id, role: 'assistant', parentID: /^msg_/, mode: String, agent: String,
  path: { cwd: directory, root: directory }, cost: Number, tokens: counts, ...model, time: { created: Number, completed: Number }, finish: 'stop' })

// whole checks an answer that is a text.
function whole(s, m, text) {
  shape(m.info, anAnswer(s), 'info')
  check(!m.info.error, 'the answer has an error', m.info.error)
  same(textOf(m), text, 'text')
  for (const p of m.parts) shape(p, ids(m), 'part ' + p.type)
  same(m.parts.map(p => p.type).filter(x => x !== 'reasoning'), ['step-start', 'text', 'step-finish'], 'parts')
  shape(m.parts.find(p => p.type === 'text').time, { start: Number, end: Number }, 'time of the text')
  shape(m.parts.at(-1), { reason: 'stop', cost: Number, tokens: counts }, 'step-finish')
}

test('session.prompt (v1) is answered with info and parts', async t => {
  const s = await session(t)
  whole(s, await ok(v1.session.prompt({ path: { id: s.id }, body: { parts: words('say Hello from the model') } })), 'Hello from the model')
})

test('session.prompt (v2) is answered with info and parts', async t => {
  const s = await session(t)
  const m = await prompt(s, 'say a b c')
  whole(s, m, 'a b c')
  shape(m.info.tokens, { input: n => n > 0, output: n => n > 0 }, 'tokens')
})

test('session.prompt (v1) with agent and model', async t => {
  const s = await session(t)
  const agent = (await ok(v1.app.agents())).find(a => a.mode !== 'subagent' && !a.hidden).name
  const m = await ok(v1.session.prompt({ path: { id: s.id }, body: { agent, model, parts: words('say hi') } }))
  whole(s, m, 'hi')
  same(m.info.agent, agent, 'agent')
  shape(await ok(v1.session.get({ path: { id: s.id } })), { agent, model: { id: 'fake-1', providerID: 'fake' } }, 'session')
})

const newID = () => 'msg_' + (BigInt(Date.now()) * 4096n & 0xffffffffffffn).toString(16).padStart(12, '0') + 'ABCDEFGHIJKLMN'

test('session.prompt (v2) keeps the id that a client gives', async t => {
  const s = await session(t)
  const messageID = newID()
  const m = await prompt(s, 'say mine', { messageID })
  same(m.info.parentID, messageID, 'parentID')
  const list = await messages(s)
  same(list.map(x => x.info.id), [messageID, m.info.id], 'messages')
})

test('a later message keeps the id that a client gives', async t => {
  const s = await session(t)
  await prompt(s, 'say first')
  const messageID = newID()
  same((await prompt(s, 'say second', { messageID })).info.parentID, messageID, 'parentID')
  const async = newID()
  await ok(v1.session.promptAsync({ path: { id: s.id }, body: { messageID: async, parts: words('say third') } }))
  const list = await eventually(() => messages(s), l => textOf(l.at(-1)) === 'third' && l.at(-1).info.time.completed, 'no answer')
  same(list.filter(m => m.info.role === 'user').map(m => m.info.id).slice(1), [messageID, async], 'ids')
  const ids = list.map(m => m.info.id)
  same([...ids].sort(), ids, 'ids sort as the messages')
})

test('session.command (v1) keeps the id that a client gives', async t => {
  const s = await session(t)
  const messageID = newID()
  const m = await ok(v1.session.command({ path: { id: s.id }, body: { messageID, command: 'greet', arguments: 'Ada' } }))
  same(m.info.parentID, messageID, 'parentID')
})

test('a message id without its prefix is 400', async t => {
  const s = await session(t)
  await refused(v1.session.prompt({ path: { id: s.id }, body: { messageID: 'nonsense', parts: words('say x') } }), 400)
})

test('a message id given twice is 400', async t => {
  const s = await session(t), messageID = newID()
  await prompt(s, 'say one', { messageID })
  await refused(v2.session.prompt({ sessionID: s.id, messageID, parts: words('say two') }), 400)
  same((await messages(s)).length, 2, 'messages')
}, { skip: !ours && "OpenCode's own server overwrites the message" })

test('a later message may have another model', async t => {
  const s = await session(t), other = { providerID: 'fake', modelID: 'fake-2' }
  await prompt(s, 'say one')
  for (const more of [{ model: other }, { model: other }]) {
    const m = await prompt(s, 'say two', more)
    same([textOf(m), m.info.modelID], ['two', 'fake-2'], 'answer')
  }
  same((await messages(s)).filter(m => m.info.role === 'user').map(m => m.info.model.modelID), ['fake-1', 'fake-2', 'fake-2'], 'models of the messages')
  shape(await ok(v2.session.get({ sessionID: s.id })), { model: { id: 'fake-2', providerID: 'fake' } }, 'session')
  await refused(v2.session.prompt({ sessionID: s.id, model: { providerID: 'fake', modelID: 'fake-3' }, parts: words('say three') }), ours ? 400 : 500)
})

// A client names the agent with each message; OpenCode takes its default one for a message without.
const firstAgent = async () => (await ok(v2.app.agents())).find(a => a.mode !== 'subagent' && !a.hidden && a.name !== 'second').name
const delta = (log, s) => log.until(e => e.type === 'message.part.delta' && e.properties.sessionID === s.id, 'message.part.delta')

test('a later message may have another agent', async t => {
  const log = await Log.v2(t)
  const s = await session(t), agent = await firstAgent()
  same(textOf(await prompt(s, 'offered write', { agent })), 'yes', 'tool of the first agent')
  const m = await prompt(s, 'system the second agent', { agent: 'second' })
  same([textOf(m), m.info.agent], ['yes', 'second'], 'answer of the second agent')
  same(textOf(await prompt(s, 'offered write', { agent: 'second' })), 'no', 'tool of the second agent')
  shape(await ok(v2.session.get({ sessionID: s.id })), { agent: 'second' }, 'session')
  await log.until(e => e.type === 'session.updated' && e.properties.info?.id === s.id && e.properties.info.agent === 'second', 'session.updated')
  const back = await prompt(s, 'system the second agent', { agent })
  same([textOf(back), back.info.agent], ['no', agent], 'answer of the first agent')
  same((await messages(s)).map(m => m.info.agent), [agent, agent, 'second', 'second', 'second', 'second', agent, agent], 'agents of the messages')
})

test('another agent and another model while the session works', async t => {
  const log = await Log.v2(t)
  const s = await session(t), agent = await firstAgent()
  const slow = prompt(s, 'slow 10', { agent })
  await delta(log, s)
  const m = await prompt(s, 'system the second agent', { agent: 'second', model: { providerID: 'fake', modelID: 'fake-2' } })
  same([textOf(m), m.info.agent, m.info.modelID], ['yes', 'second', 'fake-2'], 'answer')
  await slow
  const made = (await messages(s)).map(m => [m.info.agent, m.info.modelID ?? m.info.model.modelID])
  same(made, [[agent, 'fake-1'], [agent, 'fake-1'], ['second', 'fake-2'], ['second', 'fake-2']], 'agents and models of the messages')
  shape(await ok(v2.session.get({ sessionID: s.id })), { agent: 'second', model: { id: 'fake-2', providerID: 'fake' } }, 'session')
})

test('session.prompt (v2) is added to the session', async t => {
  const s = await session(t)
  await prompt(s, 'say first')
  const got = await ok(v2.session.get({ sessionID: s.id }))
  shape(got, { tokens: { input: n => n > 0, output: n => n > 0 }, time: { updated: n => n >= s.time.updated } }, 'session')
})

test('session.prompt (v2) with noReply returns the message of the user', async t => {
  const s = await session(t)
  const m = await prompt(s, 'say nothing', { noReply: true })
  shape(m.info, { role: 'user', sessionID: s.id, agent: String, model, time: { created: Number } }, 'info')
  same(textOf(m), 'say nothing', 'text')
  same((await messages(s)).length, 1, 'messages')
  check(!(s.id in await ok(v2.session.status())), 'the session works')
})

test('a message without an answer is part of the conversation', async t => {
  const log = await Log.v2(t)
  const s = await session(t)
  const first = await prompt(s, 'it is Monday', { noReply: true, messageID: newID() })
  same(textOf(await prompt(s, 'say one')), 'one', 'answer')
  const m = await prompt(s, 'it rains', { noReply: true })
  same([m.info.role, m.parts.map(p => p.text)], ['user', ['it rains']], 'the message')
  check(!(s.id in await ok(v2.session.status())), 'the session works')
  await log.until(e => e.type === 'message.updated' && e.properties.info.id === m.info.id, 'message.updated')
  same(textOf(await prompt(s, 'say two')), 'two', 'answer')
  const list = await messages(s)
  same(list.map(textOf), ['it is Monday', 'say one', 'one', 'it rains', 'say two', 'two'], 'messages')
  same(list[0].info.id, first.info.id, 'first message')
})

test('session.prompt (v1) with two texts', async t => {
  const s = await session(t)
  const m = await ok(v1.session.prompt({ path: { id: s.id }, body: { parts: [...words('background'), ...words('say both')] } }))
  whole(s, m, 'both')
  const [user] = await messages(s)
  same(user.parts.filter(p => p.type === 'text').map(p => p.text), ['background', 'say both'], 'texts of the user')
})

test('session.prompt (v2) with a file', async t => {
  const s = await session(t)
  const file = { type: 'file', mime: 'text/plain', filename: 'README.md', url: 'file://' + path.join(directory, 'README.md') }
  const m = await ok(v2.session.prompt({ sessionID: s.id, parts: [...words('say with a file'), file] }))
  same(textOf(m), 'with a file', 'text')
  const [user] = await messages(s)
  shape(user.parts.find(p => p.type === 'file'), { filename: 'README.md', mime: 'text/plain', url: String }, 'file part')
})

const fileOf = m => m.parts.find(p => p.type === 'file')
const saidOf = m => m.parts.filter(p => p.type === 'text' && p.synthetic).map(p => p.text).join('\n')

test('session.prompt (v2) with a text as data', async t => {
  const s = await session(t)
  const url = 'data:text/plain;base64,' + Buffer.from('of the client').toString('base64')
  await ok(v2.session.prompt({ sessionID: s.id, parts: [...words('say data'), { type: 'file', mime: 'text/plain', filename: 'a.txt', url }] }))
  const [user] = await messages(s)
  shape(fileOf(user), { filename: 'a.txt', mime: 'text/plain', url }, 'file part')
  check(saidOf(user).includes('of the client'), 'the model does not get the text', user.parts)
})

test('session.prompt (v2) with lines of a file', async t => {
  const s = await session(t)
  const url = 'file://' + path.join(directory, 'src/hello.go') + '?start=3&end=3'
  await ok(v2.session.prompt({ sessionID: s.id, parts: [...words('say lines'), { type: 'file', mime: 'text/plain', filename: 'hello.go', url }] }))
  const [user] = await messages(s)
  check(/Hello greets/.test(saidOf(user)) && !/package src/.test(saidOf(user)), 'the lines are not those', user.parts)
  same(fileOf(user).url, url, 'url')
})

test('session.prompt (v2) with a directory', async t => {
  const s = await session(t)
  const url = 'file://' + path.join(directory, 'src')
  await ok(v2.session.prompt({ sessionID: s.id, parts: [...words('say src'), { type: 'file', mime: 'application/x-directory', filename: 'src', url }] }))
  const [user] = await messages(s)
  check(/hello\.go/.test(saidOf(user)), 'the model does not get the list', user.parts)
  shape(fileOf(user), { mime: 'application/x-directory', url }, 'file part')
})

test('session.prompt (v2) with a picture of 9 MB in all', async t => {
  const s = await session(t)
  const png = Buffer.concat([Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64'), Buffer.alloc(3_400_000)])
  const picture = n => ({ type: 'file', mime: 'image/png', filename: n + '.png', url: 'data:image/png;base64,' + png.toString('base64') })
  await ok(v2.session.prompt({ sessionID: s.id, noReply: true, parts: [...words('say pictures'), picture(1), picture(2)] }))
  const [user] = await messages(s)
  same(user.parts.filter(p => p.type === 'file').map(p => [p.filename, p.url.length]), [['1.png', picture(1).url.length], ['2.png', picture(2).url.length]], 'files')
})

test('session.prompt (v2) with an agent that is named', async t => {
  const s = await session(t)
  const agent = (await ok(v2.app.agents())).find(a => a.mode === 'subagent' && !a.hidden).name
  const part = { type: 'agent', name: agent, source: { value: '@' + agent, start: 0, end: agent.length + 1 } }
  const m = await ok(v2.session.prompt({ sessionID: s.id, parts: [...words('@' + agent + ' look'), part] }))
  const [user] = await messages(s)
  shape(user.parts.find(p => p.type === 'agent'), part, 'agent part')
  check(saidOf(user).includes(agent) && textOf(m).includes(agent), 'the model is not told of the agent', user.parts)
})

test('session.prompt (v2) with ignored and synthetic texts', async t => {
  const s = await session(t)
  const parts = [...words('say seen'), { type: 'text', text: 'by a program', synthetic: true }, { type: 'text', text: 'say unseen', ignored: true }]
  same(textOf(await ok(v2.session.prompt({ sessionID: s.id, parts }))), 'seen', 'answer')
  const [user] = await messages(s)
  same(user.parts.map(p => [p.text, p.synthetic ?? false, p.ignored ?? false]), [['say seen', false, false], ['by a program', true, false], ['say unseen', false, true]], 'parts')
})

test('session.prompt (v2) with a thought', async t => {
  const s = await session(t)
  const m = await prompt(s, 'think forty two')
  whole(s, m, 'forty two')
  shape(m.parts.find(p => p.type === 'reasoning'), { text: 'Let me think about forty two.', time: { start: Number, end: Number } }, 'reasoning')
})

test('session.promptAsync (v1) answers 204 at once', async t => {
  const log = await Log.v1(t)
  const s = await session(t)
  const { response, data } = await v1.session.promptAsync({ path: { id: s.id }, body: { parts: words('say later') } })
  same(response.status, 204, 'status')
  check(!data || Object.keys(data).length === 0, 'there is a body', data)
  await log.idle(s.id)
  same((await messages(s)).map(m => [m.info.role, textOf(m)]), [['user', 'say later'], ['assistant', 'later']], 'messages')
})

test('session.promptAsync (v2) answers 204 at once', async t => {
  const s = await session(t)
  const { response } = await v2.session.promptAsync({ sessionID: s.id, parts: words('say later') })
  same(response.status, 204, 'status')
  await eventually(() => messages(s), l => textOf(l.at(-1) ?? { parts: [] }) === 'later', 'no answer')
})

test('a command of the model is a tool part', async t => {
  const s = await session(t)
  const m = await prompt(s, 'run bash: echo from-the-tool')
  check(textOf(m).includes('from-the-tool'), 'the result does not come back to the model', textOf(m))
  const list = await messages(s)
  same(list.map(x => x.info.role), ['user', 'assistant', 'assistant'], 'roles')
  same(list[1].info.finish, 'tool-calls', 'finish of the first answer')
  same(list.map(x => x.info.parentID), [undefined, list[0].info.id, list[0].info.id], 'parents')
  shape(toolParts(list)[0], { type: 'tool', tool: 'bash', callID: String, state: { status: 'completed', input: { command: 'echo from-the-tool' },
    output: /from-the-tool/, title: String, metadata: Object, time: { start: Number, end: Number } } }, 'tool part')
})

test('a tool that is not there is an error of the model', async t => {
  const s = await session(t)
  await prompt(s, 'call no_such_tool {"a":1}')
  const [p] = toolParts(await messages(s))
  shape(p, { type: 'tool', tool: String, state: { status: /^(completed|error)$/ } }, 'tool part')
  check(JSON.stringify(p.state).includes('no_such_tool'), 'the part does not name the tool', p)
})

test('a file of the model is written', async t => {
  const s = await session(t), file = path.join(directory, 'made.txt')
  t.after(() => rmSync(file, { force: true }))
  await prompt(s, 'write made.txt some text')
  same(readFileSync(file, 'utf8'), 'some text\n', 'file')
  shape(toolParts(await messages(s))[0], { tool: 'write', state: { status: 'completed', input: { filePath: file } } }, 'tool part')
})

test('session.diff (v1) without changes is empty', async t => {
  const s = await session(t)
  await prompt(s, 'say no change')
  same(await ok(v1.session.diff({ path: { id: s.id } })), [], 'diff')
})

test('session.diff (v2) of a message has the file that it changed', async t => {
  const s = await session(t), file = path.join(directory, 'changed.txt')
  t.after(() => rmSync(file, { force: true }))
  await prompt(s, 'write changed.txt one line')
  const [user] = await messages(s)
  const got = await eventually(() => ok(v2.session.diff({ sessionID: s.id, messageID: user.info.id })), d => d.length > 0, 'no diff')
  shape(got[0], { file: 'changed.txt', additions: 1, deletions: 0, status: 'added', patch: /\+one line/ }, 'diff')
})

test('session.todo (v1) has the list of the model', async t => {
  const log = await Log.v1(t)
  const s = await session(t)
  same(await ok(v1.session.todo({ path: { id: s.id } })), [], 'list at first')
  if (ours) return // an agent of a conversation keeps no list
  await prompt(s, 'todo buy milk')
  const got = await ok(v1.session.todo({ path: { id: s.id } }))
  shape(got[0], { content: /buy milk/, status: /^(pending|in_progress)$/, priority: /^(high|medium|low)$/ }, 'item')
  const e = await log.until(e => e.type === 'todo.updated' && e.properties.sessionID === s.id, 'todo.updated')
  same(e.properties.todos, got, 'event')
})

test('a delegation makes a child', async t => {
  const s = await session(t)
  const m = await prompt(s, 'delegate report to parent')
  check(textOf(m).includes('report to parent'), 'the result of the child does not come back', textOf(m))
  const [child] = await ok(v2.session.children({ sessionID: s.id }))
  shape(child, { parentID: s.id, title: String, directory }, 'child')
  same((await messages(child)).map(x => x.info.role), ['user', 'assistant'], 'messages of the child')
  shape(toolParts(await messages(s))[0], { tool: 'task', state: { status: 'completed', input: Object, metadata: { sessionId: child.id } } }, 'tool part')
})

test('session.abort (v1) during an answer', async t => {
  const log = await Log.v1(t)
  const s = await session(t)
  const answer = ok(v1.session.prompt({ path: { id: s.id }, body: { parts: words('slow 100') } }))
  await log.until(e => e.type === 'message.part.delta' && e.properties.sessionID === s.id, 'message.part.delta')
  same(await ok(v1.session.abort({ path: { id: s.id } })), true, 'abort')
  const m = await answer
  shape(m.info, { role: 'assistant', sessionID: s.id, error: { name: 'MessageAbortedError', data: { message: String } }, time: { completed: Number } }, 'info')
  check(/^word1 /.test(textOf(m)), 'what was said before is lost', m.parts)
  await log.until(e => e.type === 'session.error' && e.properties.sessionID === s.id && e.properties.error.name === 'MessageAbortedError', 'session.error')
  await log.idle(s.id)
  await idle(s)
})

test('session.abort (v2) of a command', async t => {
  const log = await Log.v2(t)
  const s = await session(t)
  const answer = prompt(s, 'run bash: sleep 60')
  await log.until(e => e.type === 'message.part.updated' && e.properties.part.sessionID === s.id && e.properties.part.state?.status === 'running', 'a running tool')
  same(await ok(v2.session.abort({ sessionID: s.id })), true, 'abort')
  const m = await answer
  same(m.info.error?.name, 'MessageAbortedError', 'error')
  shape(toolParts(await messages(s))[0], { tool: 'bash', state: { status: /^(completed|error)$/, time: { end: Number } } }, 'tool part')
  await idle(s)
})

test('session.abort (v2) of an idle session is true', async t => {
  const s = await session(t)
  same(await ok(v2.session.abort({ sessionID: s.id })), true, 'abort')
})

test('a session continues after an abort', async t => {
  const log = await Log.v2(t)
  const s = await session(t)
  const answer = prompt(s, 'slow 100')
  await log.until(e => e.type === 'message.part.delta' && e.properties.sessionID === s.id, 'message.part.delta')
  await ok(v2.session.abort({ sessionID: s.id }))
  await answer
  same(textOf(await prompt(s, 'say again')), 'again', 'text')
})

test('two prompts at once on one session are both answered', async t => {
  const log = await Log.v2(t)
  const s = await session(t)
  const first = prompt(s, 'slow 10')
  await log.until(e => e.type === 'session.status' && e.properties.sessionID === s.id && e.properties.status.type === 'busy', 'session.status')
  const second = prompt(s, 'say the second')
  const [a, b] = await Promise.all([first, second])
  for (const m of [a, b]) shape(m.info, { role: 'assistant', sessionID: s.id, time: { completed: Number } }, 'info')
  same(textOf(b), 'the second', 'answer to the second')
  same(a.info.id, b.info.id, 'answer to the first')
  const list = await messages(s)
  same(list.filter(m => m.info.role === 'user').map(textOf), ['slow 10', 'say the second'], 'messages of the user')
  await idle(s)
})

test('three prompts at once on a session that has begun get the last answer', async t => {
  const log = await Log.v2(t)
  const s = await session(t)
  await prompt(s, 'think zero')
  const first = prompt(s, 'slow 10')
  await delta(log, s)
  const all = await Promise.all([first, prompt(s, 'say the second'), prompt(s, 'say the third')])
  const last = (await messages(s)).at(-1)
  check(/^the (second|third)$/.test(textOf(last)), 'the last answer is to none of the two', textOf(last))
  same(all.map(m => m.info.id), [last.info.id, last.info.id, last.info.id], 'answers')
  await idle(s)
})

test('two first prompts at once are both answered', async t => {
  const s = await session(t)
  const [a, b] = await Promise.all([prompt(s, 'say one'), prompt(s, 'say two')])
  for (const m of [a, b]) check(/^(one|two)$/.test(textOf(m)), 'no answer', m)
  same((await messages(s)).filter(m => m.info.role === 'user').map(textOf).sort(), ['say one', 'say two'], 'messages of the user')
  await idle(s)
})

test('an abort answers all that wait', async t => {
  const log = await Log.v2(t)
  const s = await session(t)
  const first = prompt(s, 'slow 100')
  await delta(log, s)
  const second = prompt(s, 'one more thing')
  if (ours) await log.until(e => e.type === 'message.part.delta' && e.properties.delta?.includes('word5'), 'more of the answer')
  else await eventually(() => messages(s), l => l.length === 3, 'the second message')
  same(await ok(v2.session.abort({ sessionID: s.id })), true, 'abort')
  const [a, b] = await Promise.all([first, second])
  same([a.info.error?.name, b.info.error?.name], ['MessageAbortedError', 'MessageAbortedError'], 'errors')
  same(a.info.id, b.info.id, 'answers')
  await idle(s)
  const m = await prompt(s, 'say again')
  same(textOf(m), 'again', 'next answer')
  same((await messages(s)).filter(m => m.info.role === 'user').map(textOf), ['slow 100', 'one more thing', 'say again'], 'messages of the user')
})

test('two sessions answer at the same time', async t => {
  const [a, b] = [await session(t), await session(t)]
  const slow = prompt(a, 'slow 40')
  await eventually(() => ok(v2.session.status()), all => all[a.id], 'the first session is not busy')
  same(textOf(await prompt(b, 'say quick')), 'quick', 'text')
  check(a.id in await ok(v2.session.status()), 'the slow session is no longer busy')
  await ok(v2.session.abort({ sessionID: a.id }))
  await slow
})

test('a refusal of the provider is the error of the answer', async t => {
  const log = await Log.v2(t)
  const s = await session(t)
  const m = await prompt(s, 'fail')
  shape(m.info, { role: 'assistant', error: { name: 'APIError', data: { message: /refuses/, statusCode: 400, isRetryable: false } } }, 'info')
  await log.until(e => e.type === 'session.error' && e.properties.sessionID === s.id, 'session.error')
  await idle(s)
})
