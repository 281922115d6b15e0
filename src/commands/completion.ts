import tab from '@bomb.sh/tab/commander'
import type { Command } from 'commander'
import { MARKETS } from '../markets/markets.ts'

/**
 * `bursar completion <shell>` prints a script that completes commands and options; the script asks `bursar complete`.
 * To be called when all commands are there.
 */
export function completionCommand(program: Command): void {
  const completion = tab(program, { completionCommandName: 'completion' })
  program.commands
    .find((command) => command.name() === 'completion')!
    .description('print a script that lets a shell complete this program: source <(bursar completion bash)')
  for (const [name, command] of completion.commands) {
    const market = command.options.get('market')
    if (name.startsWith('prices') && market !== undefined)
      market.handler = (complete) => MARKETS.forEach((one) => complete(one, ''))
  }
}
