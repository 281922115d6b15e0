/**
 * The kinds of tests, by what they need, with the suffixes of their files; `npx vitest run --project unit` runs one kind.
 * `npm test` runs the first two, `npm run test:all` all of them.
 */
const SUFFIXES = {
  /** Nothing but Node. */
  unit: [],
  /** A PostgreSQL. */
  database: ['db'],
  /** Also the built program, or a database for a long time. */
  program: ['program', 'slow'],
  /** Also nodes of real chains. */
  chains: ['chain'],
}
export const PROJECTS = Object.keys(SUFFIXES) as (keyof typeof SUFFIXES)[]

const FOLDERS = '{src,chains,signer,client,console,test}/**'

/** Returns the patterns of the files of a kind. A test without a suffix is a unit test. */
export function filesOf(project: (typeof PROJECTS)[number]): { include: string[]; exclude: string[] } {
  const named = (suffixes: string[]) => suffixes.map((suffix) => `${FOLDERS}/*.${suffix}.test.ts`)
  const outside = ['**/node_modules/**']
  return project === 'unit'
    ? { include: [`${FOLDERS}/*.test.ts`], exclude: [...outside, ...named(Object.values(SUFFIXES).flat())] }
    : { include: named(SUFFIXES[project]), exclude: outside }
}
