export default { server: async () => ({}), tui: async () => ({}) }
