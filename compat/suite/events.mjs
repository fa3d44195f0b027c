// The order in which a client hears of a turn. Events that a server sends in addition may stand between.
import { at, check, directory, Log, messages, ok, other, prompt, same, session, sessionOf, shape, test, v2 } from './harness.mjs'

// ordered checks that for each step there is an event that fits after the one of the step before, and returns them.
function ordered(events, steps) {
  let i = 0
  return steps.map(([what, fits]) => {
    const start = i
    while (i < events.length && !fits(events[i])) i++
    if (i === events.length) {
      const seen = events.slice(start).map(describe)
      check(false, `no event "${what}" after the one before it; there were`, seen)
    }
    return events[i++]
  })
}

const describe = e => {
  const p = e.properties
  const detail = p.info?.role ?? p.part?.type ?? p.status?.type ?? ''
  return [e.type, detail, p.part?.state?.status, p.part?.time?.end && 'end', p.info?.time?.completed && 'completed'].filter(Boolean).join(':')
}
const is = (type, fits = () => true) => e => e.type === type && fits(e.properties)
const busy = is('session.status', p => p.status.type === 'busy')
const still = is('session.status', p => p.status.type === 'idle')

const turn = [
  ['message of the user', is('message.updated', p => p.info.role === 'user')],
  ['text of the user', is('message.part.updated', p => p.part.type === 'text' && p.part.text.startsWith('say'))],
  ['busy', busy],
  ['message of the assistant', is('message.updated', p => p.info.role === 'assistant')],
  ['part of the answer', is('message.part.updated', p => p.part.type === 'text')],
  ['delta', is('message.part.delta')],
  ['final part', is('message.part.updated', p => p.part.type === 'text' && p.part.time?.end)],
  ['message completed', is('message.updated', p => p.info.role === 'assistant' && p.info.time.completed)],
  ['status idle', still],
  ['session.idle', is('session.idle')],
]

// deltas checks that the deltas of a part come after the part, and that they are its text.
function deltas(events) {
  const final = events.find(e => e.type === 'message.part.updated' && e.properties.part.type === 'text' && e.properties.part.time?.end).properties.part
  const own = events.filter(e => e.type === 'message.part.delta' && e.properties.partID === final.id)
  const part = events.findIndex(e => e.type === 'message.part.updated' && e.properties.part.id === final.id)
  check(part >= 0 && part < events.indexOf(own[0]), 'a delta comes before its part', events.map(describe))
  for (const e of own) shape(e.properties, { messageID: final.messageID, partID: final.id, field: 'text', delta: String }, 'delta')
  same(own.map(e => e.properties.delta).join(''), final.text, 'text of the deltas')
}

test('event.subscribe (v1): a turn in its order', async t => {
  const log = await Log.v1(t)
  same([log.events[0].type, log.events[0].properties], ['server.connected', {}], 'first event')
  const s = await session(t)
  await prompt(s, 'say one two three')
  await log.idle(s.id)
  const events = log.of(s.id)
  const [created] = ordered(events, [['session.created', is('session.created')], ...turn])
  shape(created.properties, { sessionID: s.id, info: { id: s.id, directory } }, 'session.created')
  deltas(events)
})

test('event.subscribe (v2): a turn in its order', async t => {
  const log = await Log.v2(t)
  const s = await session(t)
  await prompt(s, 'say four five')
  await log.idle(s.id)
  ordered(log.of(s.id), [['session.created', is('session.created')], ...turn])
  for (const e of log.events) shape(e, { id: /^evt_/, type: String, properties: Object }, 'event')
})

test('global.event (v2): directory and payload', async t => {
  const log = await Log.global(t)
  shape(log.events[0], { payload: { type: 'server.connected', properties: {} } }, 'first event')
  const s = await session(t)
  await prompt(s, 'say six seven')
  await log.idle(s.id)
  const own = log.of(s.id).filter(e => e.payload.type !== 'sync')
  for (const e of own) shape(e, { directory, payload: { id: /^evt_/, type: String, properties: Object } }, 'event')
  ordered(own.map(e => e.payload), [['session.created', is('session.created')], ...turn])
  deltas(own.map(e => e.payload))
})

test('what a command prints is told while it runs (v1)', async t => {
  const log = await Log.v1(t)
  const s = await session(t)
  await prompt(s, 'run bash: echo first; sleep 1; echo second')
  const shown = log.events.filter(e => e.type === 'message.part.updated' && e.properties.part.sessionID === s.id && e.properties.part.state?.status === 'running').map(e => e.properties.part.state.metadata?.output ?? '')
  check(shown.some(out => out.includes('first') && !out.includes('second')), 'the first line is not told while the command runs', shown)
})

test('events of a tool: pending, running, completed', async t => {
  const log = await Log.v2(t)
  const s = await session(t)
  await prompt(s, 'run bash: echo evented')
  await log.idle(s.id)
  const state = (status, fits = () => true) => is('message.part.updated', p => p.part.type === 'tool' && p.part.state.status === status && fits(p.part.state))
  const got = ordered(log.of(s.id), [
    ['busy', busy],
    ['pending', state('pending')],
    ['running', state('running', x => x.input.command === 'echo evented' && x.time.start)],
    ['completed', state('completed', x => /evented/.test(x.output) && x.time.end)],
    ['step finished', is('message.part.updated', p => p.part.type === 'step-finish' && p.part.reason === 'tool-calls')],
    ['answer completed', is('message.updated', p => p.info.role === 'assistant' && p.info.finish === 'tool-calls' && p.info.time.completed)],
    ['final text', is('message.part.updated', p => p.part.type === 'text' && /^Result/.test(p.part.text) && p.part.time?.end)],
    ['session.idle', is('session.idle')],
  ])
  same(new Set(got.slice(1, 4).map(e => e.properties.part.id)).size, 1, 'ids of the tool part')
})

test('events of a thought are deltas of the field text', async t => {
  const log = await Log.v2(t)
  const s = await session(t)
  await prompt(s, 'think of the sea')
  await log.idle(s.id)
  const [first, delta, end] = ordered(log.of(s.id), [
    ['reasoning', is('message.part.updated', p => p.part.type === 'reasoning')],
    ['delta', is('message.part.delta', p => p.delta.length > 0)],
    ['reasoning ended', is('message.part.updated', p => p.part.type === 'reasoning' && p.part.time.end)],
    ['text', is('message.part.updated', p => p.part.type === 'text')],
  ])
  same([delta.properties.partID, delta.properties.field, end.properties.part.id], [first.properties.part.id, 'text', first.properties.part.id], 'part of the delta')
  same(end.properties.part.text, 'Let me think about of the sea.', 'thought')
})

test('events of an abort end with idle', async t => {
  const log = await Log.v2(t)
  const s = await session(t)
  const answer = prompt(s, 'slow 100')
  await log.until(e => e.type === 'message.part.delta' && e.properties.sessionID === s.id, 'message.part.delta')
  await ok(v2.session.abort({ sessionID: s.id }))
  await answer
  await log.idle(s.id)
  ordered(log.of(s.id), [
    ['busy', busy],
    ['delta', is('message.part.delta')],
    ['error', is('session.error', p => p.error.name === 'MessageAbortedError')],
    ['status idle', still],
    ['session.idle', is('session.idle')],
  ])
  await log.until(is('message.updated', p => p.info.sessionID === s.id && p.info.error?.name === 'MessageAbortedError'), 'message with the error') // OpenCode sends it last
})

test('every event of a turn names its session', async t => {
  const log = await Log.v2(t)
  const s = await session(t)
  await prompt(s, 'say named')
  await log.idle(s.id)
  for (const e of log.events.filter(e => /^(message|session|permission|todo)\./.test(e.type))) check(sessionOf(e), 'no session', e)
})

test('what the events say is what the messages are', async t => {
  const log = await Log.v2(t)
  const s = await session(t)
  await prompt(s, 'run bash: echo both')
  await log.idle(s.id)
  const seen = new Map()
  for (const e of log.of(s.id)) if (e.type === 'message.part.updated') seen.set(e.properties.part.id, e.properties.part)
  for (const p of (await messages(s)).flatMap(m => m.parts)) same(seen.get(p.id), p, 'part ' + p.type)
})

test('two subscribers hear the same', async t => {
  const [a, b] = [await Log.v1(t), await Log.v2(t)]
  const s = await session(t)
  await prompt(s, 'say to both')
  await Promise.all([a.idle(s.id), b.idle(s.id)])
  const [first, second] = [a, b].map(log => log.of(s.id).map(e => e.id)) // one may have read more of what comes after the turn
  const n = Math.min(first.length, second.length)
  check(n > 5, 'hardly any events', n)
  same(first.slice(0, n), second.slice(0, n), 'ids of the events')
})

test('a subscriber of another directory hears nothing of this one', async t => {
  const log = await Log.v2(t, at(other))
  const s = await session(t)
  const there = await ok(at(other).session.create({ title: 'there' }))
  t.after(() => at(other).session.delete({ sessionID: there.id }))
  await log.until(e => e.type === 'session.created' && e.properties.sessionID === there.id, 'session.created')
  same(log.of(s.id), [], 'events of the other directory')
}, { skip: other ? '' : 'no OTHER_DIRECTORY' })
