import tab from '@bomb.sh/tab/commander'
import type { Command } from 'commander'
import { EVENT_TYPES } from '../contract/event-types.ts'
import { MARKETS } from '../contract/markets.ts'

/**
 * Defines `bursar completion <shell>`. It prints a script that completes commands and options by calling
 * `bursar complete`. Call this after all other commands are defined.
 */
export function completionCommand(program: Command): void {
  const completion = tab(program, { completionCommandName: 'completion' })
  program.commands
    .find((command) => command.name() === 'completion')!
    .description(
      'print a shell completion script (zsh, bash, fish or powershell): source <(bursar completion bash)',
    )
  for (const [name, command] of completion.commands) {
    const market = command.options.get('market')
    if (name.startsWith('prices') && market !== undefined)
      market.handler = (complete) => MARKETS.forEach((market) => complete(market, ''))
  }
  for (const [name, argument] of [
    ['trigger', 'event_type'],
    ['webhooks test', 'type'],
  ] as const)
    completion.commands
      .get(name)
      ?.argument(argument, (complete) => Object.keys(EVENT_TYPES).forEach((type) => complete(type, '')))
}
