// Drives a server that is to be compatible with OpenCode through its SDK, v1 and v2. It takes BASE_URL, which may have a path, DIRECTORY
// and TARGET (opencode or centurion); arguments are patterns of test names. compat/run.sh starts what it needs.
import { ready, runAll } from './suite/harness.mjs'
import './suite/catalogue.mjs'
import './suite/sessions.mjs'
import './suite/answers.mjs'
import './suite/history.mjs'
import './suite/asks.mjs'
import './suite/events.mjs'
import './suite/errors.mjs'
import './suite/launcher.mjs'

await ready()
const passed = await runAll(process.argv.slice(2))
process.exit(passed ? 0 : 1)
