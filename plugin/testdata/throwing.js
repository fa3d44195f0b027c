export const Throwing = async () => ({
  "tool.execute.before": async (input) => {
    throw new Error(`${input.tool} is not for you`)
  },
  "chat.params": async (_, output) => {
    output.list.push("half done")
    setTimeout(() => Promise.reject(new Error("nobody handles this")), 10)
    throw new Error("broken")
  },
})
