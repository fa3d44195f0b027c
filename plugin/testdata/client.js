export const Client = async ({ client }, { modules }) => ({
  tool: {
    talk: {
      args: {},
      execute: async () => {
        const made = await client.session.create({ body: { title: "t" } })
        const prompted = await client.session.prompt({ path: { id: made.data.id }, body: { parts: [] } })
        const gone = await client.session.get({ path: { id: "gone" } })
        await client.app.log({ body: { service: "s", level: "info", message: "m" } })
        return { output: [made.data.id, prompted.data.id, gone.error !== undefined && gone.data === undefined, !("_client" in client) === (modules === "none")] }
      },
    },
  },
})
