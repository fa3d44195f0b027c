// What a client reads at its start: configuration, providers, agents, commands, tools, the project, its files.
import { writeFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { check, directory, eventually, Log, ok, ours, same, shape, test, v1, v2 } from './harness.mjs'

const aModel = { id: 'fake-1', providerID: 'fake', name: String, api: Object, limit: { context: 100000, output: 8000 },
  cost: { input: Number, output: Number, cache: Object }, status: String, options: Object, headers: Object,
  capabilities: { toolcall: true, reasoning: Boolean, attachment: Boolean, input: { text: true }, output: { text: true } } }

test('config.get (v1) names the model', async () => {
  shape(await ok(v1.config.get()), { model: 'fake/fake-1' }, 'config')
})

test('config.get (v2) names the model', async () => {
  shape(await ok(v2.config.get()), { model: 'fake/fake-1' }, 'config')
})

test('config.providers (v1) has the provider, its model and the default', async () => {
  const got = await ok(v1.config.providers())
  const fake = got.providers.find(p => p.id === 'fake')
  shape(fake, { id: 'fake', name: 'Fake', source: String, env: Array, options: Object, models: { 'fake-1': aModel } }, 'provider')
  same(got.default.fake, 'fake-1', 'default.fake')
})

test('provider.list (v2) has all, default and connected', async () => {
  const got = await ok(v2.provider.list())
  shape(got, { all: Array, default: { fake: 'fake-1' }, connected: Array }, 'providers')
  check(got.connected.includes('fake'), 'fake is not connected', got.connected)
  shape(got.all.find(p => p.id === 'fake')?.models['fake-1'], aModel, 'model')
})

test('provider.auth (v1) is an object', async () => {
  shape(await ok(v1.provider.auth()), Object, 'provider.auth')
})

for (const [version, client] of [['v1', v1], ['v2', v2]]) {
  test(`app.agents (${version}) has a primary agent with rules`, async () => {
    const got = await ok(client.app.agents())
    for (const a of got) shape(a, { name: String, mode: /^(primary|subagent|all)$/, permission: Array, options: Object }, `agent ${a.name}`)
    check(got.some(a => a.mode !== 'subagent' && !a.hidden), 'no primary agent', got.map(a => a.name))
    same(new Set(got.map(a => a.name)).size, got.length, 'names')
    for (const r of got.flatMap(a => a.permission)) shape(r, { permission: String, pattern: String, action: /^(allow|ask|deny)$/ }, 'rule')
  })

  test(`app.log (${version}) is accepted`, async () => {
    const entry = { service: 'compat', level: 'info', message: 'from the suite' }
    same(await ok(client.app.log(version === 'v1' ? { body: entry } : entry)), true, 'answer')
  })
}

test('app.skills (v2) is an array', async () => {
  shape(await ok(v2.app.skills()), Array, 'skills')
})

test('command.list (v1) has the configured command', async () => {
  const got = await ok(v1.command.list())
  shape(got.find(c => c.name === 'greet'), { name: 'greet', description: 'Greets', template: 'say hello $ARGUMENTS, first $1, then $2', hints: ['$1', '$2', '$ARGUMENTS'] }, 'command')
})

test('command.list (v2) says where a command comes from', async () => {
  const got = await ok(v2.command.list())
  shape(got.find(c => c.name === 'greet'), { name: 'greet', source: 'command' }, 'command')
})

test('project.current (v1) is the directory', async () => {
  shape(await ok(v1.project.current()), { id: String, worktree: directory, vcs: 'git', time: { created: Number } }, 'project')
})

test('project.current (v2) has its sandboxes', async () => {
  shape(await ok(v2.project.current()), { worktree: directory, sandboxes: Array, time: { updated: Number } }, 'project')
})

test('project.list (v1) has the current project', async () => {
  const current = await ok(v1.project.current())
  const got = await ok(v1.project.list())
  check(got.some(p => p.id === current.id && p.worktree === directory), 'the project is not listed', got)
})

test('path.get (v1)', async () => {
  shape(await ok(v1.path.get()), { home: /^\//, state: /^\//, config: /^\//, worktree: directory, directory }, 'path')
})

test('path.get (v2)', async () => {
  shape(await ok(v2.path.get()), { worktree: directory, directory }, 'path')
})

test('vcs.get (v1) has the branch', async () => {
  shape(await ok(v1.vcs.get()), { branch: 'main' }, 'vcs')
})

test('tool.ids (v1) has the tools for files and commands', async () => {
  const got = await ok(v1.tool.ids())
  for (const id of ['bash', 'read', 'write', 'edit', 'glob', 'grep']) check(got.includes(id), `no tool ${id}`, got)
})

test('tool.list (v1) has descriptions and JSON schemas', async () => {
  const got = await ok(v1.tool.list({ query: { provider: 'fake', model: 'fake-1' } }))
  shape(got.find(t => t.id === 'bash'), { id: 'bash', description: String, parameters: { type: 'object', properties: { command: Object } } }, 'tool')
})

test('mcp.status (v1) is empty', async () => same(await ok(v1.mcp.status()), {}, 'mcp'))
test('lsp.status (v1) is empty', async () => same(await ok(v1.lsp.status()), [], 'lsp'))
test('formatter.status (v1) is empty', async () => same(await ok(v1.formatter.status()), [], 'formatter'))

test('global.health (v2)', async () => {
  shape(await ok(v2.global.health()), { healthy: true, version: String }, 'health')
})

test('file.list (v1) of the root', async () => {
  const got = await ok(v1.file.list({ query: { path: '.' } }))
  shape(got.find(f => f.name === 'README.md'), { name: 'README.md', path: 'README.md', absolute: path.join(directory, 'README.md'), type: 'file', ignored: false }, 'file')
  shape(got.find(f => f.name === 'src'), { type: 'directory', path: /^src\/?$/ }, 'directory')
})

test('file.list (v2) of a directory below', async () => {
  const got = await ok(v2.file.list({ path: 'src' }))
  shape(got.find(f => f.name === 'hello.go'), { path: 'src/hello.go', type: 'file' }, 'file')
})

test('file.read (v1) has the text', async () => {
  const got = await ok(v1.file.read({ query: { path: 'README.md' } }))
  shape(got, { type: 'text', content: /A needle is in this file/ }, 'file')
})

test('file.status (v1) is an array', async () => {
  shape(await ok(v1.file.status()), Array, 'file.status')
})

test('find.text (v1) has path, line and place', async () => {
  const got = await ok(v1.find.text({ query: { pattern: 'needle' } }))
  shape(got.find(m => m.path.text === 'README.md'), { lines: { text: /needle/ }, line_number: 3, absolute_offset: Number,
    submatches: s => s[0].match.text === 'needle' && s[0].start === 2 && s[0].end === 8 }, 'match')
}, { skip: ours || process.env.RIPGREP ? '' : 'OpenCode needs ripgrep' })

test('find.files (v1) finds by a part of the name', async () => {
  const got = await ok(v1.find.files({ query: { query: 'hello' } }))
  check(got.includes('src/hello.go'), 'src/hello.go is not found', got)
})

test('find.files (v2) keeps to its limit', async () => {
  const got = await ok(v2.find.files({ query: 'e', limit: 1 }))
  same(got.length, 1, 'files')
})

test('find.symbols (v1) without a language server is empty', async () => {
  same(await ok(v1.find.symbols({ query: { query: 'Hello' } })), [], 'symbols')
})

test('a new file is found', async t => {
  const file = path.join(directory, 'quite-new.txt')
  t.after(() => rmSync(file))
  writeFileSync(file, 'new\n')
  await eventually(() => ok(v1.find.files({ query: { query: 'quite-new' } })), got => got.includes('quite-new.txt'), 'found')
})

test('tui.showToast (v1) becomes an event', async t => {
  const log = await Log.v1(t)
  same(await ok(v1.tui.showToast({ body: { title: 'T', message: 'a toast', variant: 'success', duration: 2000 } })), true, 'answer')
  const e = await log.until(e => e.type === 'tui.toast.show', 'tui.toast.show')
  same(e.properties, { title: 'T', message: 'a toast', variant: 'success', duration: 2000 }, 'toast')
})

test('tui.appendPrompt (v2) becomes an event', async t => {
  const log = await Log.v2(t)
  same(await ok(v2.tui.appendPrompt({ text: 'more' })), true, 'answer')
  const e = await log.until(e => e.type === 'tui.prompt.append', 'tui.prompt.append')
  same(e.properties, { text: 'more' }, 'prompt')
})

test('tui.publish (v1) publishes', async t => {
  const log = await Log.v1(t)
  const body = { type: 'tui.toast.show', properties: { message: 'published', variant: 'info' } }
  same(await ok(v1.tui.publish({ body })), true, 'answer')
  await log.until(e => e.type === 'tui.toast.show' && e.properties.message === 'published', 'tui.toast.show')
})
