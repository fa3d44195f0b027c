export const Late = async () => {
  await new Promise((done) => setTimeout(done, 600))
  return { tool: { late: { args: {}, execute: async () => "here" } } }
}
