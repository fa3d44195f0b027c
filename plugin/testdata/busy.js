const block = () => {
  for (;;);
}
export const Busy = async (_, { when }) => {
  if (when === "init") block()
  return { "shell.env": async () => block(), event: async () => block() }
}
