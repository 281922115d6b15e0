import { useSignal, type Signal } from '@preact/signals'
import { Action } from '../action.tsx'
import { Choice, filterOf, Filters, ListOf, useList, type Column } from '../list.tsx'
import { Actor, Id, Status, Time, Title } from '../parts.tsx'
import type { ApiClient } from '../records.ts'
import { may } from '../session.ts'

/** The programs that use the API: their scopes, a new secret, and the end of their access. */

export interface Rotated {
  client_id: string
  client_secret: string
  credentials: ApiClient
}

/** For how many seconds the previous secret is accepted, and that time in words. */
const GRACE: Record<string, string> = {
  '86400': 'a day',
  '3600': 'an hour',
  '604800': 'seven days',
  '0': 'no time at all',
}

export function ClientsPage() {
  const list = useList<ApiClient>('/v2/api-creds/credentials', { statuses: filterOf('status') })
  const rotated = useSignal<Rotated | undefined>(undefined)
  const grace = useSignal('86400')
  return (
    <>
      <Title>API clients</Title>
      <p class="quiet">
        The command <code>bursar client create</code> creates an API client. Its secret is shown once and
        never stored.
      </p>
      <NewSecret of={rotated} />
      <Filters>
        <Choice name="Status" filter="status" of={['APPROVED', 'DELETED']} any="Approved" />
        {may('api_creds:rotate_credentials') && (
          <label>
            After a rotation, accept the previous secret for
            <select value={grace.value} onChange={({ currentTarget }) => (grace.value = currentTarget.value)}>
              {Object.keys(GRACE).map((seconds) => (
                <option key={seconds} value={seconds}>
                  {GRACE[seconds]}
                </option>
              ))}
            </select>
          </label>
        )}
      </Filters>
      <ListOf
        list={list}
        name="API clients"
        none="There is no API client."
        columns={columnsOf(list.again, rotated, grace.value)}
        keyOf={({ id }) => id}
      />
    </>
  )
}

/** Shows the new secret until the page is left. */
export const NewSecret = ({ of }: { of: Signal<Rotated | undefined> }) => (
  <div role="status">
    {of.value !== undefined && (
      <div class="secret">
        <p>
          New secret of client <Id of={of.value.client_id} />. It is shown once: save it now.
        </p>
        <p>
          <Id of={of.value.client_secret} whole />
        </p>
        {of.value.credentials.previous_secret_expires_at !== undefined && (
          <p>
            The previous secret is accepted until{' '}
            <Time at={of.value.credentials.previous_secret_expires_at} />
          </p>
        )}
        <button type="button" onClick={() => (of.value = undefined)}>
          I have saved it
        </button>
      </div>
    )}
  </div>
)

function columnsOf(
  again: () => void,
  rotated: Signal<Rotated | undefined>,
  grace: string,
): Column<ApiClient>[] {
  return [
    { name: 'Client', cell: ({ client_id: id, name }) => <Actor of={{ id, name }} /> },
    { name: 'Status', cell: ({ status }) => <Status of={status} /> },
    { name: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: 'Last token',
      cell: ({ last_used_at: at }) => (at === undefined ? 'never' : <Time at={at} />),
    },
    {
      name: 'Scopes',
      cell: ({ client_scopes }) => (
        <details>
          <summary>{client_scopes.length === 1 ? '1 scope' : `${client_scopes.length} scopes`}</summary>
          <ul class="plain">
            {client_scopes.map((scope) => (
              <li key={scope}>
                <code>{scope}</code>
              </li>
            ))}
          </ul>
        </details>
      ),
    },
    {
      name: 'Previous secret until',
      cell: ({ previous_secret_expires_at: until }) => until !== undefined && <Time at={until} />,
    },
    {
      name: 'Actions',
      cell: ({ client_id, status }) =>
        status === 'APPROVED' && (
          <>
            {may('api_creds:rotate_credentials') && (
              <Action<Rotated>
                call={{
                  method: 'POST',
                  path: `/v2/api-creds/credentials/${client_id}/rotate`,
                  body: { grace_seconds: Number(grace) },
                }}
                done={(answer) => {
                  rotated.value = answer
                  again()
                }}
                ask={`Make a new secret, and accept the previous one for ${GRACE[grace]}?`}
              >
                Rotate
              </Action>
            )}
            {may('api_creds:delete_credentials') && (
              <Action
                call={{ method: 'DELETE', path: `/v2/api-creds/credentials/${client_id}` }}
                done={() => again()}
                ask="Delete it? Its secret and its access tokens end within a second."
                kind="danger"
              >
                Delete
              </Action>
            )}
          </>
        ),
    },
  ]
}
