/**
 * The kinds of tests, by what they need, with the suffixes of their files; `npx vitest run --project unit` runs one kind.
 * `npm test` runs the first three, `npm run test:all` all of them.
 */
const SUFFIXES = {
  /** Nothing but Node. */
  unit: [],
  /** A PostgreSQL: the tests of src, which run without families of chains (`coreAlone`). */
  core: ['db'],
  /** A PostgreSQL: all other tests. */
  database: ['db'],
  /** Also the built program, or a database for a long time. */
  program: ['program', 'slow'],
  /** Also nodes of real chains. */
  chains: ['chain'],
}
export const PROJECTS = Object.keys(SUFFIXES) as (keyof typeof SUFFIXES)[]

const FOLDERS = '{src,chains,signer,client,console,test}/**'
const CORE = 'src/**'

/** Returns the patterns of the files of a kind. A test without a suffix is a unit test. */
export function filesOf(project: (typeof PROJECTS)[number]): { include: string[]; exclude: string[] } {
  const named = (suffixes: string[], folders = FOLDERS) =>
    suffixes.map((suffix) => `${folders}/*.${suffix}.test.ts`)
  const outside = ['**/node_modules/**']
  if (project === 'unit')
    return {
      include: [`${FOLDERS}/*.test.ts`],
      exclude: [...outside, ...named(Object.values(SUFFIXES).flat())],
    }
  if (project === 'core') return { include: named(SUFFIXES.core, CORE), exclude: outside }
  return { include: named(SUFFIXES[project]), exclude: project === 'database' ? [...outside, CORE] : outside }
}

const GONE = 'folder that is taken away'

/** Takes the folders chains and signer away: what imports them fails. Networks of src are the simulated ones then. */
export const coreAlone = {
  name: 'core-alone',
  enforce: 'pre' as const,
  resolveId: (imported: string) => (/^\..*\/(chains|signer)\//.test(imported) ? GONE : undefined),
  load: (id: string) =>
    id === GONE
      ? `throw new Error('src and its tests stand without the folders chains and signer')`
      : undefined,
}
