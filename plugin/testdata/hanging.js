export const Hanging = () => new Promise(() => {})
