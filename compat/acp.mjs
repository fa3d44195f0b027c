// What acpx makes of `centurion acp`, step by step. One project has no host but the editor's own process, the other one that of the server.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'

const { ACPX, CENTURION, DIRECTORY, OTHER_DIRECTORY } = process.env

// acpx runs acpx in a directory and returns its exit code, its output and its messages.
function acpx(args, { dir = OTHER_DIRECTORY, format = 'json' } = {}) {
  return new Promise((done, fail) => {
    const child = spawn(process.execPath, [ACPX, '--agent', `${CENTURION} acp`, '--cwd', dir, '--format', format, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    const timer = setTimeout(() => { child.kill('SIGKILL'); fail(new Error(`acpx ${args.join(' ')} hangs: ${out}${err}`)) }, 60_000)
    let out = '', err = ''
    child.stdout.on('data', d => out += d)
    child.stderr.on('data', d => err += d)
    child.on('close', code => {
      clearTimeout(timer)
      const messages = format === 'json' ? out.split('\n').filter(l => l.startsWith('{')).map(l => JSON.parse(l)) : []
      done({ code, out, err, messages, updates: messages.filter(m => m.method === 'session/update').map(m => m.params.update) })
    })
  })
}

const said = r => r.updates.filter(u => u.sessionUpdate === 'agent_message_chunk').map(u => u.content.text).join('')
const reason = r => r.messages.findLast(m => m.result?.stopReason)?.result.stopReason
const call = r => r.updates.filter(u => u.sessionUpdate.startsWith('tool_call')).at(-1)

const steps = {
  'a question is answered in pieces': async dir => {
    const r = await acpx(['exec', 'think hello out there'], { dir })
    assert.equal(said(r), 'hello out there')
    assert.ok(r.updates.some(u => u.sessionUpdate === 'agent_thought_chunk'), r.out)
    assert.equal(reason(r), 'end_turn')
    assert.equal(r.code, 0)
  },
  'a written file is a diff': async dir => {
    const r = await acpx(['exec', `write ${path.join(dir, 'acp.txt')} some text`], { dir })
    assert.deepEqual(call(r).content, [{ type: 'diff', path: path.join(dir, 'acp.txt'), newText: 'some text\n' }])
    assert.equal(call(r).kind, 'edit')
    assert.equal(readFileSync(path.join(dir, 'acp.txt'), 'utf8'), 'some text\n')
  },
  'a command is approved': async dir => {
    const r = await acpx(['--approve-all', 'exec', 'run bash: expr 20 + 3'], { dir })
    assert.equal(said(r), 'Result: 23')
    const asked = r.messages.find(m => m.method === 'session/request_permission')
    assert.match(JSON.stringify(asked.params.toolCall.content), /expr 20 \+ 3/)
    assert.deepEqual(asked.params.options.map(o => o.kind), ['allow_once', 'allow_always', 'reject_once'])
  },
  'a command is refused': async dir => {
    const r = await acpx(['--deny-all', 'exec', 'run bash: expr 20 + 4'], { dir })
    assert.match(said(r), /a person refused it/)
    assert.equal(call(r).status, 'failed')
  },
  'a plan is told': async dir => {
    const r = await acpx(['--approve-all', 'exec', '/task plan a thing'], { dir })
    const plan = r.updates.findLast(u => u.sessionUpdate === 'plan')
    assert.deepEqual(plan.entries.map(e => e.content.split(' ')[0]), ['T1', 'T2'])
    assert.ok(r.updates.some(u => u.sessionUpdate === 'current_mode_update' && u.currentModeId === 'commander'), r.out)
  },
  'a session is loaded, cancelled and goes on': async dir => {
    const session = { dir }
    let r = await acpx(['sessions', 'new', '--name', 'one'], session)
    assert.equal(r.code, 0, r.err)
    r = await acpx(['--ttl', '1', 'prompt', '-s', 'one', 'say first'], session)
    assert.equal(said(r), 'first')
    await new Promise(next => setTimeout(next, 3000)) // its process ends, and the next one loads the session
    r = await acpx(['prompt', '-s', 'one', 'say second'], session)
    assert.ok(said(r).endsWith('second'), r.out)
    assert.ok(r.messages.some(m => m.method === 'session/load'), r.out)
    const long = acpx(['prompt', '-s', 'one', 'run bash: sleep 50'], session)
    await new Promise(next => setTimeout(next, 4000))
    r = await acpx(['cancel', '-s', 'one'], session)
    assert.equal(r.code, 0, r.err)
    assert.equal(reason(await long), 'cancelled')
    r = await acpx(['prompt', '-s', 'one', 'say third'], session)
    assert.equal(said(r), 'third')
    await acpx(['sessions', 'close', 'one'], session)
  },
  'a mode is chosen': async dir => {
    await acpx(['sessions', 'new', '--name', 'two'], { dir })
    const r = await acpx(['set-mode', '-s', 'two', 'commander'], { dir })
    assert.equal(r.code, 0, r.err)
    const bad = await acpx(['set-mode', '-s', 'two', 'worker'], { dir })
    assert.notEqual(bad.code, 0)
    await acpx(['sessions', 'close', 'two'], { dir })
  },
}

let failed = 0
for (const [where, dir] of [['alone', OTHER_DIRECTORY], ['beside a server', DIRECTORY]]) {
  for (const [name, step] of Object.entries(steps)) {
    const title = `${name} (${where})`
    if (process.argv.length > 2 && !process.argv.slice(2).some(p => title.includes(p))) continue
    try {
      await step(dir)
      console.log(`ok    ${title}`)
    } catch (err) {
      failed++
      console.log(`FAIL  ${title}\n${err.stack}`)
    }
  }
}
process.exitCode = failed ? 1 : 0
