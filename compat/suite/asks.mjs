// Permissions and questions: asked of a person, answered by either client.
import { check, idle, Log, messages, ok, ours, prompt, refused, same, session, shape, test, textOf, toolParts, v1, v2 } from './harness.mjs'

// asking sends a prompt and returns its ask, the log and the promise of the answer.
async function asking(t, text, type = 'permission.asked') {
  const log = await Log.v2(t)
  const s = await session(t)
  const answer = prompt(s, text)
  answer.catch(() => {})
  const e = await log.until(e => e.type === type && e.properties.sessionID === s.id, type)
  return { log, s, answer, ask: e.properties }
}

const unknown = requestID => ({ _tag: 'PermissionNotFoundError', requestID, message: String })
const replied = (log, ask, reply) => log.until(e => e.type === 'permission.replied' && e.properties.requestID === ask.id && e.properties.reply === reply, 'permission.replied')

test('an ask says what is to be run', async t => {
  const { s, ask, answer } = await asking(t, 'run bash: expr 1 + 1')
  shape(ask, { id: /^per_/, sessionID: s.id, permission: 'bash', patterns: ['expr 1 + 1'], metadata: Object, always: Array, tool: { messageID: /^msg_/, callID: String } }, 'ask')
  const list = await messages(s)
  const part = toolParts(list)[0]
  same([part.messageID, part.callID, part.state.status], [ask.tool.messageID, ask.tool.callID, 'running'], 'part of the ask')
  same((await ok(v2.permission.list())).find(p => p.id === ask.id), ask, 'listed ask')
  check(s.id in await ok(v2.session.status()), 'the session that waits is not busy')
  await ok(v2.permission.reply({ requestID: ask.id, reply: 'reject' }))
  await answer
  check(!(await ok(v2.permission.list())).some(p => p.id === ask.id), 'the ask is still listed')
})

test('permission (v1) once', async t => {
  const { log, s, ask, answer } = await asking(t, 'run bash: expr 20 + 3')
  same(await ok(v1.postSessionIdPermissionsPermissionId({ path: { id: s.id, permissionID: ask.id }, body: { response: 'once' } })), true, 'reply')
  check(textOf(await answer).includes('23'), 'the command did not run')
  await replied(log, ask, 'once')
})

test('permission (v2) once, asked again the next time', async t => {
  const { log, s, ask, answer } = await asking(t, 'run bash: expr 30 + 4')
  same(await ok(v2.permission.reply({ requestID: ask.id, reply: 'once' })), true, 'reply')
  check(textOf(await answer).includes('34'), 'the command did not run')
  const next = prompt(s, 'run bash: expr 30 + 4')
  const e = await log.until(e => e.type === 'permission.asked' && e.properties.sessionID === s.id && e.properties.id !== ask.id, 'permission.asked')
  await ok(v2.permission.reply({ requestID: e.properties.id, reply: 'once' }))
  await next
})

test('permission (v1) reject', async t => {
  const { log, s, ask, answer } = await asking(t, 'run bash: factor 42')
  same(await ok(v1.postSessionIdPermissionsPermissionId({ path: { id: s.id, permissionID: ask.id }, body: { response: 'reject' } })), true, 'reply')
  await answer
  await replied(log, ask, 'reject')
  const list = await messages(s)
  shape(toolParts(list)[0], { state: { status: 'error', error: String } }, 'tool part')
  check(!JSON.stringify(list).includes('2 3 7'), 'the command has run')
  await idle(s)
})

test('permission (v2) reject with a message', async t => {
  const { s, ask, answer } = await asking(t, 'run bash: factor 15')
  await ok(v2.permission.reply({ requestID: ask.id, reply: 'reject', message: 'rather not today' }))
  await answer
  shape(toolParts(await messages(s))[0], { state: { status: 'error', error: /rather not today/ } }, 'tool part')
  await idle(s)
})

test('permission (v1) always', async t => {
  const { log, s, ask, answer } = await asking(t, 'run bash: seq 1 3')
  check(ask.always.length > 0, 'nothing would be allowed always', ask)
  await ok(v1.postSessionIdPermissionsPermissionId({ path: { id: s.id, permissionID: ask.id }, body: { response: 'always' } }))
  await answer
  await replied(log, ask, 'always')
  await prompt(s, 'run bash: seq 1 3')
  same(log.of(s.id).filter(e => e.type === 'permission.asked').length, 1, 'asks')
})

test('permission (v2) always', async t => {
  const { log, s, ask, answer } = await asking(t, 'run bash: basename /a/b')
  await ok(v2.permission.reply({ requestID: ask.id, reply: 'always' }))
  await answer
  await prompt(s, 'run bash: basename /a/b')
  same(log.of(s.id).filter(e => e.type === 'permission.asked').length, 1, 'asks')
})

test('a reply (v1) to an ask that is over is 404', async t => {
  const { s, ask, answer } = await asking(t, 'run bash: expr 4 + 4')
  const reply = () => v1.postSessionIdPermissionsPermissionId({ path: { id: s.id, permissionID: ask.id }, body: { response: 'once' } })
  await ok(reply())
  await answer
  shape(await refused(reply(), 404), unknown(ask.id), 'error')
})

test('a reply (v2) to an ask that is over is 404', async t => {
  const { ask, answer } = await asking(t, 'run bash: expr 5 + 5')
  await ok(v2.permission.reply({ requestID: ask.id, reply: 'once' }))
  await answer
  shape(await refused(v2.permission.reply({ requestID: ask.id, reply: 'once' }), 404), unknown(ask.id), 'error')
})

test('a reply (v2) to an ask that never was is 404', async () => {
  await refused(v2.permission.reply({ requestID: 'per_000000000001AAAAAAAAAAAAAA', reply: 'once' }), 404)
})

test('a reply (v2) that is no word of the schema is 400', async t => {
  const { s, ask, answer } = await asking(t, 'run bash: expr 6 + 6')
  await refused(v2.permission.reply({ requestID: ask.id, reply: 'perhaps' }), 400)
  check((await ok(v2.permission.list())).some(p => p.id === ask.id), 'the ask is gone')
  await ok(v2.session.abort({ sessionID: s.id }))
  await answer
})

test('an abort ends an ask', async t => {
  const { s, ask, answer } = await asking(t, 'run bash: dirname /a/b')
  await ok(v2.session.abort({ sessionID: s.id }))
  await answer
  await idle(s)
  if (ours) check(!(await ok(v2.permission.list())).some(p => p.id === ask.id), 'the ask is still listed') // OpenCode forgets it
})

test('question.reply (v2) comes back to the model', async t => {
  const { log, s, ask, answer } = await asking(t, 'ask a question', 'question.asked')
  shape(ask, { id: /^que_/, sessionID: s.id, questions: q => q.length === 1 && q[0].question === 'Which colour?', tool: { messageID: /^msg_/, callID: String } }, 'question')
  same(ask.questions[0].options.map(o => o.label), ['red', 'blue'], 'options')
  same((await ok(v2.question.list())).find(q => q.id === ask.id), ask, 'listed question')
  same(await ok(v2.question.reply({ requestID: ask.id, answers: [['blue']] })), true, 'reply')
  check(textOf(await answer).includes('blue'), 'the answer does not come back')
  const e = await log.until(e => e.type === 'question.replied' && e.properties.requestID === ask.id, 'question.replied')
  shape(e.properties, { sessionID: s.id, answers: [['blue']] }, 'question.replied')
  const late = await refused(v2.question.reply({ requestID: ask.id, answers: [['red']] }), 404)
  shape(late, { _tag: 'QuestionNotFoundError', requestID: ask.id, message: String }, 'error')
})

test('question.reply (v2) with own words', async t => {
  const { ask, answer } = await asking(t, 'ask a question', 'question.asked')
  await ok(v2.question.reply({ requestID: ask.id, answers: [['turquoise']] }))
  check(textOf(await answer).includes('turquoise'), 'the answer does not come back')
})

test('question.reject (v2)', async t => {
  const { log, s, ask, answer } = await asking(t, 'ask a question', 'question.asked')
  same(await ok(v2.question.reject({ requestID: ask.id })), true, 'reject')
  await answer
  await log.until(e => e.type === 'question.rejected' && e.properties.requestID === ask.id, 'question.rejected')
  shape(toolParts(await messages(s))[0], { state: { status: /^(error|completed)$/ } }, 'tool part')
  await refused(v2.question.reject({ requestID: ask.id }), 404)
  await idle(s)
})
