import { Closed } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { operation } from '../operation.ts'

export const resetSandbox = operation({
  method: 'POST',
  url: '/v2/sandbox/reset',
  scope: 'sandbox:write_sandbox',
  tag: 'Sandbox',
  repeats: 'HARMLESS',
  summary: 'Reset Sandbox',
  description:
    'Deletes every record of every customer, and makes the demo again. The answer comes first, then the service starts again: wait until `/health/ready` answers 200. A 409 says that another process uses the database: stop it first. Access tokens end; the API client of the demo keeps its id and secret. Exists in sandbox mode only.',
  sandboxOnly: true,
  problems: ['conflict'],
  reply: Closed({}),
  async run({ beginAnew }) {
    if (beginAnew === undefined)
      throw problem.forbidden(
        'this sandbox has a test network, or was not started by bursar serve: it is not reset',
      )
    await beginAnew()
    return {}
  },
})
