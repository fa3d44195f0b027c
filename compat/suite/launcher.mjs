// Starting the server from the SDK: it runs the `opencode` of the PATH, which is a launcher where ours is meant.
import { createOpencode } from '@opencode-ai/sdk'
import { check, other, ours, test } from './harness.mjs'

test('createOpencode starts a server with a configuration', async () => {
  const was = process.cwd()
  process.chdir(other)
  const { client, server } = await createOpencode({ port: 0, timeout: ours ? 5000 : 30_000, config: { command: { mine: { description: 'Mine', template: 'say $ARGUMENTS' } } } })
  try {
    const project = await client.path.get()
    check(project.data?.directory === other, 'it serves another directory', project.data)
    const commands = await client.command.list()
    check(commands.data?.some(c => c.name === 'mine' && c.description === 'Mine'), 'its configuration is not in force', commands.data)
  } finally {
    server.close()
    process.chdir(was)
  }
})
