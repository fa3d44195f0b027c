export const Exits = async () => process.exit(3)
