import { x } from "some-other-runtime"
export const Runtime = async () => x
