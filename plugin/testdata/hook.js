export const Hook = async () => ({ "tool.execute.before": () => new Promise(() => {}) })
