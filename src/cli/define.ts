import { Command, InvalidArgumentError } from 'commander'
import { print } from './output.ts'
import type { Column } from './table.ts'

/** How commands are defined: their options, their answers and their lists. It loads nothing of the service. */

/** Reads one of some names, which are in capitals. For commander. */
export const oneOf =
  <Name extends string>(names: readonly Name[]) =>
  (text: string): Name => {
    const found = names.find((name) => name === text.toUpperCase())
    if (found === undefined) throw new InvalidArgumentError(`must be one of ${names.join(', ')}.`)
    return found
  }

/** What a command says: a value for programs, and a text for people. Nothing where it has printed by itself. */
// oxlint-disable-next-line typescript/no-invalid-void-type
export type Answer = readonly [json: unknown, text: string] | void

/** Opens what a command works on, runs the work and closes it. It knows the command's options. */
export interface Door<Context, Options = object> {
  (work: (context: Context) => Promise<void>, options: Options): Promise<void>
  /** An option that each of its commands has. */
  option?: readonly [flags: string, description: string]
}

/** The door of a command that needs nothing. */
export const offline: Door<object> = (work) => work({})

interface List<Context, Given extends unknown[], Row> {
  /** The member of the JSON that has the rows. Without it, each row is a line of JSON. */
  key?: string
  /** The text for no rows; without it, a table without rows. */
  none?: string
  read: (context: Context, ...given: Given) => Promise<readonly Row[]>
  columns: readonly Column<Row, Context>[]
}

/** A command with `--json`. */
export class Subcommand extends Command {
  override createCommand(name?: string): Subcommand {
    return new Subcommand(name)
  }

  /** Prints what `work` answers. It gets the context of the door, the arguments and the options. Call it last. */
  answer<Context, Given extends unknown[], Options>(
    door: Door<Context, Options>,
    work: (context: Context, ...given: Given) => Promise<Answer>,
  ): this {
    if (door.option !== undefined) this.option(...door.option)
    if (!this.options.some(({ long }) => long === '--json')) this.option('--json', 'print JSON')
    return this.action((...given: unknown[]) => {
      const options = this.opts<Options & { json?: true }>()
      return door(async (context) => {
        const answer = await work(context, ...(given as Given))
        if (answer) print(options.json ? answer[0] : answer[1])
      }, options)
    })
  }

  /** Prints the rows that `read` returns, as a table for people. Call it last. */
  list<Context, Given extends unknown[], Row, Options>(
    door: Door<Context, Options>,
    { key, none, read, columns }: List<Context, Given, Row>,
  ): this {
    return this.answer(door, async (context, ...given: Given) => {
      const rows = await read(context, ...given)
      // Loaded for lists only: a library draws tables.
      const { tableOf } = await import('./table.ts')
      const text = rows.length === 0 && none !== undefined ? none : tableOf(rows, columns, context)
      if (key !== undefined) return [{ [key]: rows }, text]
      if (!this.opts<{ json?: true }>().json) return [undefined, text]
      for (const row of rows) print(row)
    })
  }
}

/** Defines a command below another one, or below the program. */
export function define(parent: Command, name: string, description: string): Subcommand {
  const command = new Subcommand(name).description(description).copyInheritedSettings(parent)
  parent.addCommand(command)
  return command
}
