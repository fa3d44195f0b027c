// What a client gets for requests that make no sense. Where OpenCode answers 500, ours says what was wrong.
import { check, messages, model, ok, ours, prompt, raw, refused, same, session, shape, test, textOf, v1, v2, words } from './harness.mjs'

const nowhere = 'ses_ffffffffffffAAAAAAAAAAAAAA'
const wrong = ours ? 400 : 500

const calls = {
  'get (v1)': () => v1.session.get({ path: { id: nowhere } }),
  'get (v2)': () => v2.session.get({ sessionID: nowhere }),
  'update (v2)': () => v2.session.update({ sessionID: nowhere, title: 'x' }),
  'delete (v2)': () => v2.session.delete({ sessionID: nowhere }),
  'messages (v1)': () => v1.session.messages({ path: { id: nowhere } }),
  'prompt (v1)': () => v1.session.prompt({ path: { id: nowhere }, body: { parts: words('say x') } }),
  'prompt (v2)': () => v2.session.prompt({ sessionID: nowhere, parts: words('say x') }),
  'promptAsync (v2)': () => v2.session.promptAsync({ sessionID: nowhere, parts: words('say x') }),
  'fork (v2)': () => v2.session.fork({ sessionID: nowhere }),
  'revert (v2)': () => v2.session.revert({ sessionID: nowhere, messageID: 'msg_000000000001AAAAAAAAAAAAAA' }),
  'summarize (v2)': () => v2.session.summarize({ sessionID: nowhere, ...model }),
  'command (v2)': () => v2.session.command({ sessionID: nowhere, command: 'greet', arguments: '' }),
  'shell (v2)': () => v2.session.shell({ sessionID: nowhere, agent: 'build', command: 'true' }),
}
for (const [name, call] of Object.entries(calls)) {
  test(`session.${name} of an unknown session is 404`, async () => {
    const error = await refused(call(), 404, 'NotFoundError')
    check(error.data.message.includes(nowhere), 'the error does not name the session', error)
  })
}

const body = async (t, text) => {
  const s = await session(t)
  const got = await raw('POST', `/session/${s.id}/message`, text)
  same((await messages(s)).length, 0, 'messages')
  return got
}

test('a body that is no JSON is refused', async t => {
  same((await body(t, '{"parts": [')).status, wrong, 'status')
})

test('a body of the wrong shape is 400', async t => {
  const got = await body(t, { parts: 'x' })
  same(got.status, 400, 'status')
  shape(got.body, { name: 'BadRequest', data: { message: /parts/, kind: 'Payload' } }, 'error')
})

test('a body without parts is 400', async t => {
  same((await body(t, {})).status, 400, 'status')
})

test('a part of an unknown type is 400', async t => {
  same((await body(t, { parts: [{ type: 'song', text: 'x' }] })).status, 400, 'status')
})

test('a session id without its prefix is refused', async () => {
  const { status } = await raw('GET', '/session/nonsense')
  check((ours ? [400, 404] : [500]).includes(status), 'status', status)
})

test('a field that a newer client sends is no error', async t => {
  const s = await session(t)
  const got = await raw('POST', `/session/${s.id}/message`, { parts: words('say x'), noReply: true, brandNew: 1 })
  same(got.status, 200, 'status')
})

test('an unknown model is refused', async t => {
  const s = await session(t)
  await refused(v1.session.prompt({ path: { id: s.id }, body: { model: { providerID: 'fake', modelID: 'no-such' }, parts: words('say x') } }), wrong)
})

test('an unknown agent is refused', async t => {
  const s = await session(t)
  await refused(v2.session.prompt({ sessionID: s.id, agent: 'no-such-agent', parts: words('say x') }), wrong)
})

test('a session continues after a prompt that was refused', async t => {
  const s = await session(t)
  await refused(v2.session.prompt({ sessionID: s.id, agent: 'no-such-agent', parts: words('say x') }), wrong)
  same(textOf(await prompt(s, 'say still there')), 'still there', 'text')
})

test('an unknown command is refused', async t => {
  const s = await session(t)
  await refused(v2.session.command({ sessionID: s.id, command: 'no-such-command', arguments: '' }), wrong)
})

test('sharing is not there', async t => {
  const s = await session(t)
  await refused(v1.session.share({ path: { id: s.id } }), ours ? 404 : [404, 500, 200])
})
