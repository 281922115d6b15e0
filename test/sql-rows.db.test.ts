/*
 * Rows match their declared types. `query<Row>(text)` is a cast that no compiler checks. This test finds each such call
 * in src and has PostgreSQL describe the statement on the real schema, without executing it. It compares the columns
 * with the properties of Row, by name and by kind (text, number, boolean). It does not check whether a column may be
 * null. On a Citus cluster it also runs each statement, and those without rows, because it refuses some only then.
 */
import { relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import pg from 'pg'
import ts from 'typescript'
import { afterAll, expect, test } from 'vitest'
import { CLUSTER } from './cluster.ts'
import { sources } from './sources.ts'
import { ownDatabase } from './support.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/**
 * Functions that compose their statements at run time, so that this test cannot read them. Their own tests and
 * test/generated-sql.db.test.ts run these statements. The list may only shrink.
 */
const COMPOSED = [
  'chains/bitcoin/deposits.ts recordedOutputs',
  'chains/evm/taken-back.ts endedBefore',
  'src/access/audit-log/audit-records.ts selectAuditRecords',
  'src/access/tokens/client-standing.ts readLists',
  'src/audit/sealed-rows.ts genuine',
  'src/audit/sealed-rows.ts notGenuine',
  'src/audit/sealed-rows.ts renew',
  'src/audit/sealed-rows.ts seal',
  'src/audit/sealed-rows.ts sealAll',
  'src/db/changes.ts firstIn',
  'src/db/horizon.ts selectSessions',
  'src/db/lock-rows.ts lockRows',
  // The statements of `readOfCustomer`, which this test reads where it is called.
  'src/db/shared-transaction.ts rowsOf',
  'src/db/shared-transaction.ts rowsOfEach',
  'src/money/movements/paid-in-limit.ts selectSpendable',
  'src/money/records/record-limits.ts countRecords',
  'src/money/records/write-prices.ts writePrices',
  'src/money/verify/chain-check.ts #records',
  'src/money/verify/row-rules.ts rowDisagreements',
  'src/money/verify/verify.ts verifyCustomer',
  'src/resources/events/list-events.ts selectEvents',
  'src/resources/list-operation.ts selectWhere',
  'src/resources/markets/list-historical-candles.ts selectCandles',
  'src/resources/markets/list-historical-prices.ts countPoints',
  'src/resources/markets/list-historical-prices.ts findPage',
  'src/resources/markets/list-historical-prices.ts selectPoints',
  'src/resources/orchestrations/create-orchestration-rule.ts findRule',
  'src/resources/orchestrations/list-orchestrations.ts selectOrchestrations',
  'src/resources/reports/list-activity.ts read',
  'src/resources/statements/generate-statements.ts selectDays',
  'src/upkeep/metrics/database-gauges.ts readSamples',
  'src/upkeep/retention/partition-status.ts partitionStatus',
]

/** Functions that read a cluster's own tables, which a plain database lacks. */
const OF_A_CLUSTER = [
  'src/db/database.ts begin',
  'src/db/database.ts requirePlaces',
  'src/db/distribution.ts distribute',
  'src/db/distribution.ts distributeNewTables',
  'src/db/distribution.ts place',
  'src/db/distribution.ts requireCoordinator',
  'src/db/distribution.ts workerNodes',
  'src/db/nodes.ts readPlaces',
  'src/db/nodes.ts withTables',
  'src/db/distribution.ts isDistributed',
]

/** Functions on the schema of a sandbox's moved clock, which is made by the first move. */
const OF_A_MOVED_CLOCK = ['src/db/sandbox-clock.ts advanceIn']

/** Functions whose statements look for a customer, so that a cluster asks all its nodes. */
const OF_ALL_CUSTOMERS = [
  'src/money/books/book.ts readEntries',
  'src/money/books/book.ts readProfileSums',
  'src/money/books/book.ts readSums',
  'src/money/records/transfer-owner.ts findOwner',
  'src/money/verify/closed-days.ts changedDays',
  'src/rails/payouts/found-withdrawals.ts findPayee',
]

const database = await ownDatabase(1)
const client = new pg.Client({ connectionString: database.ownerUrl })
await client.connect()
afterAll(() => client.end())

interface Call {
  /** `src/access/tokens/api-clients.ts listApiClients` */
  where: string
  /** undefined: the statement has no rows, or nobody reads them. */
  row: ts.Type | undefined
  node: ts.Node
  /** One text for each combination of its conditions; undefined when the statement is composed at run time. */
  texts: string[] | undefined
}

const config = ts.readConfigFile(`${ROOT}/tsconfig.json`, (file) => ts.sys.readFile(file))
const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, ROOT)
const program = ts.createProgram([`${ROOT}/src/main.ts`], options)
const checker = program.getTypeChecker()
const ownFiles = new Set(sources.map(({ file }) => file))

test('the columns of every statement match its row type', async () => {
  const calls: Call[] = []
  for (const source of program.getSourceFiles()) {
    if (!ownFiles.has(relative(ROOT, source.fileName))) continue
    for (const call of callsIn(source)) calls.push(await call)
  }
  expect(calls.length).toBeGreaterThan(100)
  const functions = new Set(calls.map(({ where }) => where))
  const exceptions = [...OF_A_CLUSTER, ...OF_A_MOVED_CLOCK, ...OF_ALL_CUSTOMERS]
  expect(
    exceptions.filter((name) => !functions.has(name)),
    'no such function',
  ).toEqual([])
  const composed = calls.filter(({ row, texts }) => row && texts === undefined).map(({ where }) => where)
  const faults: string[] = []
  for (const { where, row, node, texts = [] } of calls) {
    if (OF_A_CLUSTER.includes(where) || OF_A_MOVED_CLOCK.includes(where)) continue
    for (const text of row ? texts : []) {
      const columns = await describe(text).catch((error: Error) => `${error.message}: ${text.slice(0, 200)}`)
      const found = typeof columns === 'string' ? [columns] : differences(columns, row!, node)
      faults.push(...found.map((fault) => `${where}: ${fault}`))
    }
    if (CLUSTER.length === 0) continue
    for (const text of texts) {
      const refusal = READS_OR_WRITES.test(text) ? await refusalOf(where, text) : undefined
      if (refusal !== undefined) faults.push(`${where}: ${refusal}: ${text.slice(0, 200)}`)
    }
  }
  expect.soft([...new Set(faults)]).toEqual([])
  expect([...new Set(composed)].sort()).toEqual(COMPOSED)
})

interface Column {
  name: string
  dataTypeID: number
}

/** Returns the columns of a statement's rows. The server parses and describes the statement without executing it. */
function describe(text: string): Promise<Column[]> {
  return new Promise((resolve, reject) => {
    let columns: Column[] = []
    client.query({
      submit(connection: pg.Connection & { sync: () => void }) {
        connection.parse({ text, name: '', types: [] }, true)
        connection.describe({ type: 'S', name: '' }, true)
        connection.sync()
      },
      handleRowDescription: (message: { fields: Column[] }) => void (columns = message.fields),
      handleError: reject,
      handleReadyForQuery: () => resolve(columns),
    } as unknown as pg.Submittable)
  })
}

/** A value of each type that a parameter of a statement may have. Its list has it once. */
const SAMPLES: Record<string, string> = {
  boolean: 'true',
  bytea: '\\x00',
  date: '2026-01-01',
  interval: '1 hour',
  jsonb: '{}',
  'timestamp with time zone': '2026-01-01T00:00:00Z',
  uuid: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f',
}

/** Another value for a list: ids are on another shard, and texts make other keys. */
const OTHERS: Record<string, string> = { uuid: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e1a', text: '2' }

const READS_OR_WRITES = /^\s*(select|with|insert|update|delete)\b/

/** A statement about rows of one customer. An insert is not explained: its rows name the shard. */
const OF_ONE_CUSTOMER = /^(?!\s*insert)[^]*\b(?:customer_id|c\.id) = \$\d/

/** The codes of what Citus does not take, or cannot plan. The sample values themselves break constraints and rules. */
const REFUSED = /^(0A|XX)/

/** Runs a statement with sample values for its parameters, and takes it back. Returns why a cluster refuses it. */
async function refusalOf(where: string, text: string): Promise<string | undefined> {
  await client.query(`prepare sample as ${text}`)
  const { rows } = await client.query<{ types: string[] }>(
    `select parameter_types::text[] as types from pg_prepared_statements where name = 'sample'`,
  )
  await client.query('deallocate sample')
  const values = rows[0]!.types.map((type) => {
    const sample = SAMPLES[type.replace('[]', '')] ?? '1'
    // Ids of customers on two shards: Citus refuses more then.
    return type.endsWith('[]') ? [sample, OTHERS[type.replace('[]', '')] ?? sample] : sample
  })
  await client.query('begin')
  try {
    await client.query(text, values)
    if (!OF_ONE_CUSTOMER.test(text) || OF_ALL_CUSTOMERS.includes(where)) return undefined
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain (costs off) ${text}`, values)
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    if (/Task Count: (?!1$)/m.test(plan)) return 'it does not go to one shard'
  } catch (error) {
    const { code, message } = error as pg.DatabaseError
    if (REFUSED.test(code!)) return message
  } finally {
    await client.query('rollback')
  }
  return undefined
}

/** The JavaScript type of the driver's values, for the PostgreSQL types with a simple one. */
const KINDS: Record<number, ts.TypeFlags> = {
  [pg.types.builtins.BOOL]: ts.TypeFlags.BooleanLike,
  [pg.types.builtins.INT2]: ts.TypeFlags.NumberLike,
  [pg.types.builtins.INT4]: ts.TypeFlags.NumberLike,
  [pg.types.builtins.FLOAT8]: ts.TypeFlags.NumberLike,
  [pg.types.builtins.INT8]: ts.TypeFlags.StringLike,
  [pg.types.builtins.NUMERIC]: ts.TypeFlags.StringLike,
  [pg.types.builtins.TEXT]: ts.TypeFlags.StringLike,
  [pg.types.builtins.UUID]: ts.TypeFlags.StringLike,
  [pg.types.builtins.TIMESTAMPTZ]: ts.TypeFlags.StringLike,
}

function differences(columns: Column[], row: ts.Type, node: ts.Node): string[] {
  const members = new Map(
    (row.isUnion() ? row.types : [row])
      .flatMap((type) => checker.getPropertiesOfType(type))
      .map((its) => [its.name, its]),
  )
  const named = new Set(columns.map(({ name }) => name))
  const missing = [...members.values()]
    .filter(({ name, flags }) => !named.has(name) && !(flags & ts.SymbolFlags.Optional) && !row.isUnion())
    .map(({ name }) => `${name} is no column`)
  const wrong = columns.flatMap(({ name, dataTypeID }) => {
    const member = members.get(name)
    if (member === undefined) return [`column ${name} is not in the type`]
    const type = checker.getNonNullableType(checker.getTypeOfSymbolAtLocation(member, node))
    const parts = type.isUnion() ? type.types : [type]
    const kind = KINDS[dataTypeID]
    const fits = kind === undefined || parts.every(({ flags, ...part }) => isOf(kind, { flags, ...part }))
    return fits ? [] : [`column ${name} is no ${checker.typeToString(type)}`]
  })
  return [...missing, ...wrong]
}

/** Returns whether a type is of a kind. A branded text is an intersection with text. */
const isOf = (kind: ts.TypeFlags, type: ts.Type): boolean =>
  (type.flags & (kind | ts.TypeFlags.Any | ts.TypeFlags.Unknown)) !== 0 ||
  ((type.flags & ts.TypeFlags.Intersection) !== 0 &&
    (type as ts.IntersectionType).types.some((part) => isOf(kind, part)))

/** Statements are read one after another: `given` belongs to one. */
let reading: Promise<unknown> = Promise.resolve()

/** Finds every call `….query<Row>(statement)` and `….query(statement)` in a file. */
function callsIn(source: ts.SourceFile): Promise<Call>[] {
  const found: Promise<Call>[] = []
  const visit = (node: ts.Node): void => {
    const statement = ts.isCallExpression(node) ? sentBy(node) : undefined
    if (ts.isCallExpression(node) && statement !== undefined) {
      const row = node.typeArguments && checker.getTypeFromTypeNode(node.typeArguments[0]!)
      const where = `${relative(ROOT, source.fileName)} ${nameAround(node)}`
      const argument = statementOf(statement)
      const call = reading.then(async () => ({ where, row, node, texts: await textsOf(argument) }))
      found.push(call)
      reading = call
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/** Returns the statement of a call that sends one, `db.query(statement)` or `readOfCustomer(db, statement)`. */
function sentBy({ expression, arguments: given }: ts.CallExpression): ts.Expression | undefined {
  if (ts.isPropertyAccessExpression(expression))
    return expression.name.text === 'query' ? given[0] : undefined
  return expression.getText() === 'readOfCustomer' ? given[1] : undefined
}

/** Returns the name of the function or constant that contains a call. */
function nameAround(node: ts.Node): string {
  for (let at = node.parent; !ts.isSourceFile(at); at = at.parent) {
    if (ts.isSourceFile(at.parent) && ts.isVariableStatement(at))
      return at.declarationList.declarations[0]!.name.getText()
    if ((ts.isFunctionDeclaration(at) || ts.isMethodDeclaration(at)) && at.name) return at.name.getText()
  }
  return 'module'
}

/** Returns the text of a statement, which may be the `text` of `{ text, values }`. */
function statementOf(argument: ts.Expression): ts.Expression | undefined {
  if (!ts.isObjectLiteralExpression(argument)) return argument
  for (const property of argument.properties) {
    if (ts.isPropertyAssignment(property) && property.name.getText() === 'text') return property.initializer
    if (ts.isShorthandPropertyAssignment(property) && property.name.text === 'text') return property.name
  }
  return undefined
}

/** The outcome of each condition, by its source text: equal conditions have equal outcomes. */
type Ways = Map<string, boolean>

/** Returns one text for each combination of outcomes; undefined when a part of the statement is not constant. */
async function textsOf(node: ts.Expression | undefined): Promise<string[] | undefined> {
  const ways: Ways = new Map()
  const first = node && (await textOf(node, ways))
  if (node === undefined || first === undefined) return undefined
  const conditions = [...ways.keys()]
  const texts = [first]
  for (let bits = 1; bits < 2 ** conditions.length; bits++) {
    const others: Ways = new Map(conditions.map((words, place) => [words, (bits & (1 << place)) === 0]))
    const text = await textOf(node, others)
    if (text === undefined) return undefined
    texts.push(text)
  }
  return texts
}

async function textOf(node: ts.Expression, ways: Ways): Promise<string | undefined> {
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) return textOf(node.expression, ways)
  if (ts.isStringLiteralLike(node) || ts.isNumericLiteral(node)) return node.text
  if (ts.isConditionalExpression(node)) {
    const words = node.condition.getText()
    if (!ways.has(words)) ways.set(words, true)
    return textOf(ways.get(words) ? node.whenTrue : node.whenFalse, ways)
  }
  if (ts.isTemplateExpression(node)) {
    let text = node.head.text
    for (const { expression, literal } of node.templateSpans) {
      const part = await textOf(expression, ways)
      if (part === undefined) return undefined
      text += part + literal.text
    }
    return text
  }
  if (ts.isCallExpression(node)) return textOfCall(node, ways)
  return ts.isIdentifier(node) ? textOfName(node, ways) : undefined
}

/** What a function gives for constant texts, such as `sealOf('operators')`: an exported one, or one of a single expression. */
async function textOfCall(call: ts.CallExpression, ways: Ways): Promise<string | undefined> {
  const texts: string[] = []
  for (const argument of call.arguments) {
    const text = await textOf(argument, ways)
    if (text === undefined) return undefined
    texts.push(text)
  }
  const declaration = symbolOf(call.expression)?.valueDeclaration
  if (declaration === undefined) return undefined
  const made = await exported(declaration)
  if (typeof made === 'function') {
    const text = (made as (...texts: string[]) => unknown)(...texts)
    return typeof text === 'string' ? text : undefined
  }
  const own = ts.isVariableDeclaration(declaration) ? declaration.initializer : undefined
  if (own !== undefined && ts.isArrowFunction(own) && !ts.isBlock(own.body)) {
    for (const [place, parameter] of own.parameters.entries()) {
      const text = texts[place] ?? (parameter.initializer && (await textOf(parameter.initializer, ways)))
      if (text === undefined) return undefined
      given.set(parameter, text)
    }
    return textOf(own.body, ways)
  }
  return undefined
}

/** The value of an exported constant or function, from its module. */
async function exported(declaration: ts.Declaration): Promise<unknown> {
  if (!(ts.getCombinedModifierFlags(declaration) & ts.ModifierFlags.Export)) return undefined
  const name = ts.getNameOfDeclaration(declaration)?.getText()
  const path = declaration.getSourceFile().fileName
  if (name === undefined || !path.startsWith(`${ROOT}src/`)) return undefined
  return ((await import(pathToFileURL(path).href)) as Record<string, unknown>)[name]
}

function symbolOf(name: ts.Node): ts.Symbol | undefined {
  let symbol = ts.isShorthandPropertyAssignment(name.parent)
    ? checker.getShorthandAssignmentValueSymbol(name.parent)
    : checker.getSymbolAtLocation(name)
  if (symbol && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol)
  return symbol
}

/** The texts of the parameters of the function that is being read. */
const given = new Map<ts.Node, string>()

async function textOfName(name: ts.Identifier, ways: Ways): Promise<string | undefined> {
  const declaration = symbolOf(name)?.valueDeclaration
  if (declaration !== undefined && given.has(declaration)) return given.get(declaration)
  if (declaration === undefined || !ts.isVariableDeclaration(declaration)) return undefined
  const isConstant = (ts.getCombinedNodeFlags(declaration) & ts.NodeFlags.Const) !== 0
  if (!isConstant || declaration.initializer === undefined) return undefined
  const text = await textOf(declaration.initializer, ways)
  if (text !== undefined) return text
  // A computed constant.
  const value = await exported(declaration)
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
}
