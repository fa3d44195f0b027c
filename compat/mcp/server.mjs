// Drives `centurion mcp` with the protocol's client for Node: a permission is shown whole, refused once and given once; a client that goes
// loses nothing of its mission, which the next one finds.
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'

const cwd = process.env.DIRECTORY
const file = path.join(cwd, 'keep.txt')

async function connect() {
  const client = new Client({ name: 'compat', version: '1' })
  await client.connect(new StdioClientTransport({ command: process.env.CENTURION, args: ['mcp', '--sandbox', 'off'], cwd, env: process.env, stderr: 'inherit' }))
  return client
}

async function call(client, name, args = {}, options) {
  const result = await client.callTool({ name, arguments: args }, undefined, options)
  assert.ok(!result.isError, `${name}: ${JSON.stringify(result.content)}`)
  return result.structuredContent
}

let client = await connect()
const { tools } = await client.listTools() // with it the client checks every result against its schema
assert.equal(tools.length, 11)
for (const answer of ['deny', 'once']) {
  writeFileSync(file, 'x')
  const asked = await call(client, 'delegate', { task: 'run bash: ask-nobody; rm keep.txt' })
  assert.equal(asked.questions.length, 1, JSON.stringify(asked))
  const [{ id, text, details }] = asked.questions
  assert.match(text, /ask-nobody; rm keep\.txt/)
  assert.equal(JSON.parse(details).command, 'ask-nobody; rm keep.txt')
  await call(client, 'answer', { id, answer })
  const result = await call(client, 'mission_result', { wait_seconds: 50 })
  assert.equal(result.mission.status, 'completed')
  assert.equal(existsSync(file), answer === 'deny')
  console.log('ok   a permission answered with', answer)
}

let steps = 0
const running = await call(client, 'run_mission', { goal: 'slow 100', wait_seconds: 4 }, { onprogress: () => { steps++ } })
assert.ok(running.next.includes('mission_result') && steps > 0, JSON.stringify(running))
await client.close()
client = await connect()
const { missions } = await call(client, 'list_missions')
assert.equal(missions[0].id, running.mission.id)
console.log('ok   a client that goes; its mission is', missions[0].status)
await call(client, 'cancel', { mission: running.mission.id })
const again = await client.callTool({ name: 'resume', arguments: { mission: running.mission.id } })
assert.ok(again.isError && again.content[0].text.includes('cancelled already'), JSON.stringify(again))
await client.close()
console.log('ok   a cancelled mission')
