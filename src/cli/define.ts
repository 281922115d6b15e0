import { Argument, Command, InvalidArgumentError, Option } from 'commander'
import type { OperatorOperation } from '../resources/operation.ts'
import { EXIT } from './exit.ts'
import { print } from './output.ts'
import { ownProcess } from './own-process.ts'
import type { Column } from './table.ts'

/**
 * How commands are declared. A command is a row: its usage, as docs/command-line.md writes it, the operation or work that it runs,
 * and what it says of the answer. This module loads nothing of the service.
 */

/** Reads one of these names from text in any case. For commander. */
export const oneOf =
  <Name extends string>(names: readonly Name[]) =>
  (text: string): Name => {
    const found = names.find((name) => name.toUpperCase() === text.toUpperCase())
    if (found === undefined) throw new InvalidArgumentError(`must be one of ${names.join(', ')}.`)
    return found
  }

/** What an argument or option means, and how its text is read: by a function, or as one of these texts. */
type Word = readonly [about: string, read?: ((text: string) => unknown) | readonly string[]]
/** The words of usages: `<transfer_id>`, `--network <network>`, `--now`. */
export type Words = Readonly<Record<string, Word>>

type ValueOf<W, Flag extends string> = Flag extends keyof W
  ? W[Flag] extends readonly [string, (text: string) => infer Value]
    ? Value
    : W[Flag] extends readonly [string, readonly (infer Text)[]]
      ? Text
      : string
  : string

type NameOf<Flag extends string> = Flag extends `${infer Before}-${infer After}`
  ? `${Before}_${NameOf<After>}`
  : Flag

/** What an argument `name`, an option `--name <value>` or a flag `--name` gives. */
type Part<W, Text extends string> = Text extends `--${infer Name} <${infer Value}...>`
  ? Record<NameOf<Name>, ValueOf<W, `--${Name} <${Value}>`>[]>
  : Text extends `--${infer Name} <${infer Value}>`
    ? Record<NameOf<Name>, ValueOf<W, `--${Name} <${Value}>`>>
    : Text extends `--${infer Name}`
      ? Record<NameOf<Name>, true>
      : Text extends `${infer Name}...`
        ? Record<Name, ValueOf<W, `<${Name}>`>[]>
        : Record<Text, ValueOf<W, `<${Text}>`>>

type Orless<T> = { [Name in keyof T]?: T[Name] | undefined }

/** What a command of this usage is given, by names with underscores. */
export type Given<W, Usage extends string> = Usage extends `${infer Before}[${infer Inner}]${infer Rest}`
  ? Given<W, Before> & Orless<Part<W, Inner>> & Given<W, Rest>
  : Usage extends `${infer Before}--${infer Name} <${infer Value}>${infer Rest}`
    ? Given<W, Before> & Part<W, `--${Name} <${Value}>`> & Given<W, Rest>
    : Usage extends `${string}<${infer Name}>${infer Rest}`
      ? Part<W, Name> & Given<W, Rest>
      : { json?: true }

const PARTS = /\[(--[\w-]+(?: <[^>]+>)?|[\w.]+)\]|--[\w-]+ <[^>]+>|<[^>]+>/g

/** Adds what a usage names to a command. Returns the names of its arguments, in their order. */
function addParts(command: Command, usage: string, words: Words): string[] {
  const names: string[] = []
  for (const [part, inner] of usage.matchAll(PARTS)) {
    const isArgument = !(inner ?? part).startsWith('--')
    const flags = isArgument ? part : (inner ?? part)
    const word = words[isArgument ? `<${flags.slice(1, -1).replace('...', '')}>` : flags.replace('...', '')]
    if (word === undefined) throw new TypeError(`${flags} has no meaning`)
    const [about, read] = word
    const on = isArgument ? new Argument(flags, about) : new Option(flags, about)
    if (typeof read === 'function')
      on.argParser((text: string, before: unknown) =>
        on.variadic ? [...((before as unknown[] | undefined) ?? []), read(text)] : read(text),
      )
    else if (read !== undefined) on.choices(read)
    if (on instanceof Option) {
      command.addOption(on.makeOptionMandatory(inner === undefined))
      continue
    }
    command.addArgument(on)
    names.push(on.name())
  }
  return names
}

/** Opens the context of a command, such as the database or the API, runs the work with it and closes it. */
export interface OpenContext<Context> {
  (
    work: (context: Context) => Promise<void>,
    options: { customer?: string | undefined; credentials?: string | undefined },
  ): Promise<void>
  option?: readonly [flags: string, description: string]
}

/** For a command that needs neither the database nor the API. */
export const offline: OpenContext<object> = (work) => work({})

interface Help<Context> {
  about: string
  /** The context of this command, where it is not that of its group. */
  in?: OpenContext<Context>
  /** Help after that of its arguments. */
  help?: string | (() => string)
  json?: string
}

/** What a command says of its answer, which is what programs get, as JSON. */
interface Telling<Context, Input, Answer> extends Help<Context> {
  /** What people get. Absent where `run` prints. */
  says?: (answer: NonNullable<Answer>, given: Input, context: Context) => string | Promise<string>
  /** Whether the command ends with 1. */
  fails?: (answer: NonNullable<Answer>) => boolean
  /** What the operator did, for the log, unless the answer says that nothing was changed. */
  logs?: string | ((answer: NonNullable<Answer>) => string)
  /** What the log names (default: what was given, and the ids of the answer); false: nothing was changed. */
  logged?: (answer: NonNullable<Answer>, given: Input) => object | false
}

interface Row<Context, Input, Answer> extends Telling<Context, Input, Answer> {
  run: (context: Context, given: Input) => Promise<Answer>
}

interface List<Context, Input, Item> extends Help<Context> {
  run: (context: Context, given: Input) => Promise<readonly Item[]>
  /** The member of the JSON that has the rows. Without it, each row is a line of JSON. */
  key?: string
  /** The text for no rows (default: a table without rows). */
  none?: string
  columns: readonly Column<Item, Context>[]
}

/** Runs an operation of operators with the members of its path, query and body by their names. */
export type Operate = <Reply>(operation: OperatorOperation<Reply>, given: object) => Promise<Reply>

interface Operating {
  operate: Operate
}

interface Logging {
  did?: (what: string, on: object) => void
}

/** Commands with one beginning, one context and the same words. */
export class Group<Context, W extends Words> {
  readonly #parent: Command
  readonly #door: OpenContext<Context>
  readonly #words: W

  constructor(parent: Command, door: OpenContext<Context>, words: W) {
    this.#parent = parent
    this.#door = door
    this.#words = words
  }

  group<const Own extends Words = W>(
    name: string,
    about: string,
    words: Own = this.#words as unknown as Own,
  ): Group<Context, Own> {
    return new Group(subcommand(this.#parent, name, about), this.#door, words)
  }

  command<const Usage extends string, Answer, Own = Context>(
    usage: Usage,
    row: Row<Own, Given<W, Usage>, Answer>,
  ): void {
    const [name] = usage.split(' ')
    const command = subcommand(this.#parent, name!, row.about)
    const names = addParts(command, usage, this.#words)
    const door = row.in ?? (this.#door as unknown as OpenContext<Own>)
    command.option('--json', row.json ?? 'print JSON on one line')
    const own = command.options.map((option) => option.attributeName())
    if (door.option !== undefined) command.option(...door.option)
    if (row.help !== undefined) command.addHelpText('after', row.help as string)
    command.action(() => {
      const options: Record<string, unknown> = command.opts()
      const named = own.filter((name) => name in options).map((name) => [underscored(name), options[name]])
      const texts = names.map((name, at) => [name, (command.processedArgs as unknown[])[at]])
      const given = Object.fromEntries([...texts, ...named]) as Given<W, Usage>
      return door(async (context) => {
        const answer = await row.run(context, given)
        if (answer === undefined || answer === null) return
        if (row.fails?.(answer)) ownProcess().exitCode = EXIT.failed
        tell(row, answer, given, context as Logging)
        const printed = given.json ? answer : ((await row.says?.(answer, given, context)) ?? '')
        if (printed !== '') print(printed)
      }, command.opts())
    })
  }

  /** A command that is an operation of operators: what it is given goes where the operation has a member of that name. */
  operation<const Usage extends string, Answer>(
    usage: Usage,
    operation: OperatorOperation<Answer>,
    row: Telling<Context, Given<W, Usage>, Answer>,
  ): void {
    const run = (context: Context, given: object) => (context as Operating).operate(operation, given)
    this.command<Usage, Answer, Context>(usage, { ...row, run })
  }

  /** A command that prints rows: as a table for people, as JSON for programs. */
  list<const Usage extends string, Item, Own = Context>(
    usage: Usage,
    { key, none, columns, run, ...row }: List<Own, Given<W, Usage>, Item>,
  ): void {
    this.command<Usage, { [key: string]: readonly Item[] }, Own>(usage, {
      json: key === undefined ? 'print JSON, one line for each row' : 'print JSON on one line',
      ...row,
      run: async (context, given) => {
        const rows = await run(context, given)
        if (key !== undefined || !given.json) return { [key ?? 'rows']: rows }
        for (const row of rows) print(row)
        return undefined as never
      },
      says: async (answer, _, context) => {
        const [rows = []] = Object.values(answer)
        // Loaded for lists only, because tables need a library.
        const { tableOf } = await import('./table.ts')
        return rows.length === 0 && none !== undefined ? none : tableOf(rows, columns, context)
      },
    })
  }
}

/** The commands below a word of the program, or the program's own. */
export const group = <Context, const W extends Words = Words>(
  program: Command,
  [name, about]: readonly [name: string, about: string] | [],
  door: OpenContext<Context>,
  words: W = {} as W,
): Group<Context, W> =>
  new Group(name === undefined ? program : subcommand(program, name, about!), door, words)

function subcommand(parent: Command, name: string, about: string): Command {
  const command = new Command(name).description(about).copyInheritedSettings(parent)
  parent.addCommand(command)
  return command
}

const underscored = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** Logs what the operator did, unless the answer says that nothing was changed. */
function tell<Context, Input extends object, Answer>(
  { logs, logged }: Telling<Context, Input, Answer>,
  answer: NonNullable<Answer>,
  given: Input,
  { did }: Logging,
): void {
  const { changed = true, is_new = true } = answer as { changed?: boolean; is_new?: boolean }
  if (logs === undefined || !changed || !is_new) return
  const ids = Object.entries(answer).filter(([name]) => /(^|_)id$/.test(name))
  const on = logged?.(answer, given) ?? { ...given, json: undefined, ...Object.fromEntries(ids) }
  if (on) did?.(typeof logs === 'string' ? logs : logs(answer), on)
}
