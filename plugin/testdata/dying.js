export const Dying = async () => ({ tool: { die: { args: {}, execute: async () => process.kill(process.pid, "SIGKILL") } } })
