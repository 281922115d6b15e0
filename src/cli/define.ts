import { Command, InvalidArgumentError } from 'commander'
import { print } from './output.ts'
import type { Column } from './table.ts'

/** How commands are defined: their options, their answers and their lists. This module loads nothing of the service. */

/** Reads one of these names from text in any case. For commander. */
export const oneOf =
  <Name extends string>(names: readonly Name[]) =>
  (text: string): Name => {
    const found = names.find((name) => name.toUpperCase() === text.toUpperCase())
    if (found === undefined) throw new InvalidArgumentError(`must be one of ${names.join(', ')}.`)
    return found
  }

/** What a command prints: a value for programs, and a text for people. Nothing where the command has printed by itself. */
// oxlint-disable-next-line typescript/no-invalid-void-type
export type CommandOutput = readonly [json: unknown, text: string] | void

/** Opens the context of a command, such as the database or the API, runs the work with it and closes it. */
export interface OpenContext<Context, Options = object> {
  (work: (context: Context) => Promise<void>, options: Options): Promise<void>
  option?: readonly [flags: string, description: string]
}

/** For a command that needs neither the database nor the API. */
export const offline: OpenContext<object> = (work) => work({})

interface List<Context, Given extends unknown[], Row> {
  /** The member of the JSON that has the rows. Without it, each row is a line of JSON. */
  key?: string
  /** The text for no rows (default: a table without rows). */
  none?: string
  read: (context: Context, ...given: Given) => Promise<readonly Row[]>
  columns: readonly Column<Row, Context>[]
}

export class Subcommand extends Command {
  override createCommand(name?: string): Subcommand {
    return new Subcommand(name)
  }

  /** Prints what `work` returns. `work` gets the context of the door, the arguments and the options. Call this last. */
  answer<Context, Given extends unknown[], Options>(
    door: OpenContext<Context, Options>,
    work: (context: Context, ...given: Given) => Promise<CommandOutput>,
    json = 'print JSON on one line',
  ): this {
    if (door.option !== undefined) this.option(...door.option)
    if (!this.options.some(({ long }) => long === '--json')) this.option('--json', json)
    return this.action((...given: unknown[]) => {
      const options = this.opts<Options & { json?: true }>()
      return door(async (context) => {
        const answer = await work(context, ...(given as Given))
        if (answer) print(options.json ? answer[0] : answer[1])
      }, options)
    })
  }

  /** Prints the rows that `read` returns: as a table for people, as JSON for programs. Call this last. */
  list<Context, Given extends unknown[], Row, Options>(
    door: OpenContext<Context, Options>,
    { key, none, read, columns }: List<Context, Given, Row>,
  ): this {
    const work = async (context: Context, ...given: Given): Promise<CommandOutput> => {
      const rows = await read(context, ...given)
      // Loaded for lists only, because tables need a library.
      const { tableOf } = await import('./table.ts')
      const text = rows.length === 0 && none !== undefined ? none : tableOf(rows, columns, context)
      if (key !== undefined) return [{ [key]: rows }, text]
      if (!this.opts<{ json?: true }>().json) return [undefined, text]
      for (const row of rows) print(row)
    }
    return this.answer(door, work, key === undefined ? 'print JSON, one line for each row' : undefined)
  }
}

/** Defines a command below another one, or below the program. */
export function define(parent: Command, name: string, description: string): Subcommand {
  const command = new Subcommand(name).description(description).copyInheritedSettings(parent)
  parent.addCommand(command)
  return command
}
