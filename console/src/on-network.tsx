import { explorerOf } from './explorers.ts'
import { Id } from './parts.tsx'
import { service } from './session.ts'

/** A hash or address with a link to the network's explorer. A sandbox's are invented or of a test chain: without a link. */
export function OnNetwork({
  of,
  kind,
  network,
}: {
  of: string
  kind: 'hash' | 'address'
  network: string | undefined
}) {
  const explorer = service.value?.mode === 'live' ? explorerOf(network, kind, of) : undefined
  return (
    <>
      <Id of={of} />
      {explorer !== undefined && (
        <>
          {' '}
          <a
            href={explorer.href}
            target="_blank"
            rel="noreferrer noopener"
            aria-label={`Look ${of} up at ${explorer.host}`}
          >
            explorer
          </a>
        </>
      )}
    </>
  )
}
