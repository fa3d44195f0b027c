// A model server for the suite: OpenAI's chat completions over loopback. What it answers is chosen by the first word of a line in the
// last message of the user; nothing is remembered between requests, so that tests do not depend on each other.
//
//   say TEXT           answers TEXT
//   think TEXT         thinks first, then answers TEXT
//   slow N             answers N words, five in a second
//   run bash: COMMAND  calls the tool for commands
//   write FILE TEXT    calls the tool that writes files
//   read FILE          calls the tool that reads files
//   ask a question     calls the tool that asks the person, with the choices red and blue
//   todo TEXT          calls the tool that keeps the to-do list
//   delegate TEXT      calls the tool that starts another agent, with the prompt "say TEXT"
//   plan TEXT          calls the tools that write a plan of two items, and start an agent on the first one with the prompt "say TEXT"
//   call TOOL JSON     calls any tool, known or not
//   system TEXT        says yes if the system prompt has TEXT, else no
//   offered TOOL       says yes if the tool is offered, else no
//   fail               is refused with status 400
//
// After the result of a tool it answers "Result: " and the beginning of it. The first line of its output is its base URL.
import { createServer } from 'node:http'
import { appendFileSync } from 'node:fs'
import path from 'node:path'

const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 }
const sleep = ms => new Promise(done => setTimeout(done, ms))
const words = /^(say|think|slow|run bash:|write|read|ask a question|todo|delegate|plan|call|system|offered|fail)(?: +(.*))?$/m

function text(content) {
  if (typeof content === 'string') return content
  return (content ?? []).map(part => part.text ?? '').join('\n')
}

// OpenCode and Centurion have tools of the same kind under other names: the one that is offered is called.
function calls(word, rest, offered, directory) {
  const has = name => offered.includes(name)
  const [first, ...more] = rest.split(' ')
  switch (word) {
    case 'run bash:': return ['bash', { command: rest, description: 'a command of the test' }]
    case 'write': return ['write', { filePath: path.resolve(directory, first), content: more.join(' ') + '\n' }]
    case 'read': return ['read', { filePath: path.resolve(directory, first) }]
    case 'call': return [first, JSON.parse(more.join(' ') || '{}')]
    case 'ask a question':
      if (has('question')) {
        const options = ['red', 'blue'].map(label => ({ label, description: 'the colour ' + label }))
        return ['question', { questions: [{ question: 'Which colour?', header: 'Colour', options }] }]
      }
      return ['ask_user', { question: 'Which colour?', choices: ['red', 'blue'] }]
    case 'todo':
      if (has('todowrite')) return ['todowrite', { todos: [{ content: rest, status: 'in_progress', priority: 'high' }] }]
      return ['update_todo', { add: [{ title: rest }] }]
    case 'plan':
      return [['update_todo', { content: `# Plan\n- [ ] T1 ${rest} @worker\n- [ ] T2 Look at it @worker\n`, level: 2 }],
        ['delegate_task', { agent: 'worker', item: 'T1', description: 'an item', prompt: 'say ' + rest }]]
    case 'delegate':
      if (has('task')) return ['task', { description: 'a delegation', prompt: 'say ' + rest, subagent_type: 'general' }]
      if (has('sub_agent')) return ['sub_agent', { prompt: 'say ' + rest }]
      return ['delegate_task', { agent: 'worker', description: 'a delegation', prompt: 'say ' + rest, background: false }]
  }
}

// answer returns what the model says to a request: thought, text, calls, or a refusal.
function answer(body) {
  const { messages = [], tools = [] } = body
  const last = messages.at(-1)
  if (last?.role === 'tool') return { text: 'Result: ' + text(last.content).slice(0, 400) }
  const system = text(messages[0]?.role === 'system' ? messages[0].content : '')
  if (/title generator/i.test(system)) return { text: 'A title of the model' }
  if (tools.length === 0) return { text: 'A summary of the model' } // of a conversation that becomes too long
  const said = text(messages.findLast(m => m.role === 'user')?.content)
  const match = words.exec(said)
  if (!match) return { text: 'Echo: ' + said.slice(0, 200) }
  const [, word, rest = ''] = match
  switch (word) {
    case 'say': return { text: rest }
    case 'think': return { thought: 'Let me think about ' + rest + '.', text: rest }
    case 'slow': return { text: Array.from({ length: Number(rest) || 50 }, (_, i) => 'word' + (i + 1) + ' ').join(''), slow: true }
    case 'system': return { text: system.includes(rest) ? 'yes' : 'no' }
    case 'offered': return { text: tools.some(t => t.function?.name === rest) ? 'yes' : 'no' }
    case 'fail': return { refused: 'this model refuses' }
  }
  const made = calls(word, rest, tools.map(t => t.function?.name), process.env.DIRECTORY ?? process.cwd())
  return { calls: (Array.isArray(made[0]) ? made : [made]).map(([tool, args]) => ({ tool, args: JSON.stringify(args) })) }
}

let serial = 0

function message(a) {
  const made = a.calls?.map(c => ({ id: 'call_' + ++serial, type: 'function', function: { name: c.tool, arguments: c.args } }))
  return { role: 'assistant', content: a.text ?? null, ...(a.thought && { reasoning_content: a.thought }), ...(made && { tool_calls: made }) }
}

async function stream(res, a, model, gone) {
  const id = 'chatcmpl-' + ++serial
  const send = (delta, finish_reason = null, more = {}) => res.write('data: ' + JSON.stringify(
    { id, object: 'chat.completion.chunk', created: 1, model, choices: [{ index: 0, delta, finish_reason }], ...more }) + '\n\n')
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  send({ role: 'assistant', content: '' })
  for (const word of a.thought?.match(/\S+\s*/g) ?? []) send({ reasoning_content: word })
  for (const word of a.text?.match(/\S+\s*/g) ?? []) {
    if (a.slow) await sleep(200)
    if (gone()) return
    send({ content: word })
  }
  for (const [index, c] of (a.calls ?? []).entries()) {
    send({ tool_calls: [{ index, id: 'call_' + ++serial, type: 'function', function: { name: c.tool, arguments: '' } }] })
    send({ tool_calls: [{ index, function: { arguments: c.args } }] })
  }
  send({}, a.calls ? 'tool_calls' : 'stop')
  res.write('data: ' + JSON.stringify({ id, object: 'chat.completion.chunk', created: 1, model, choices: [], usage }) + '\n\n')
  res.end('data: [DONE]\n\n')
}

const server = createServer(async (req, res) => {
  let raw = ''
  for await (const chunk of req) raw += chunk
  const json = (status, value) => res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  if (req.method === 'GET' && req.url.endsWith('/models')) return json(200, { object: 'list', data: [{ id: 'fake-1', object: 'model' }] })
  if (!req.url.endsWith('/chat/completions')) return json(404, { error: { message: 'no such path: ' + req.url } })
  const body = JSON.parse(raw)
  if (process.env.MODEL_LOG) appendFileSync(process.env.MODEL_LOG, raw + '\n')
  const a = answer(body)
  if (a.refused) return json(400, { error: { message: a.refused, type: 'invalid_request_error' } })
  if (body.stream) return stream(res, a, body.model, () => res.destroyed)
  return json(200, { id: 'chatcmpl-' + ++serial, object: 'chat.completion', created: 1, model: body.model, usage,
    choices: [{ index: 0, message: message(a), finish_reason: a.calls ? 'tool_calls' : 'stop' }] })
})
server.listen(Number(process.env.MODEL_PORT ?? 0), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/v1`))
