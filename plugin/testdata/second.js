export default {
  id: "second",
  server: async () => ({
    "chat.params": async (_, output) => void output.list.push(`second saw ${output.list.length}`),
    event: async () => {},
  }),
  setup: () => {
    throw new Error("of another world")
  },
}
