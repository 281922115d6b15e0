import { createRequire } from 'node:module'
import type typescript from 'typescript'

/** The compiler. An `import` of it first searches its 9 MB for the names of its exports, which takes 0.4 s of CPU. */
export const ts = createRequire(import.meta.url)('typescript') as typeof typescript
