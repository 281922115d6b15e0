import { useSignal } from '@preact/signals'
import { Action } from '../action.tsx'
import { post, put, remove } from '../api.ts'
import { Choice, filterOf, useList, type Column } from '../list.tsx'
import { Actor, Id, ShownOnce, Status, Time, Title } from '../parts.tsx'
import type { ApiClient } from '../records.ts'
import { may, session } from '../session.ts'
import { ListPage } from '../tables.tsx'

/** The programs that use the API: their scopes, a new secret, and the end of their access. */

const PATH = '/v2/api-creds/credentials'

interface Made {
  client_id: string
  client_secret: string
}

/** For how many seconds the previous secret is accepted, and that time in words. */
const GRACE: Record<string, string> = {
  '86400': 'a day',
  '3600': 'an hour',
  '604800': 'seven days',
  '0': 'no time at all',
}

export function ClientsPage() {
  const list = useList<ApiClient>(PATH, { statuses: filterOf('status') })
  const secret = useSignal('')
  const owner = useSignal('')
  const grace = useSignal('86400')
  const show = ({ client_id, client_secret }: Made) => {
    owner.value = client_id
    secret.value = client_secret
    list.again()
  }
  return (
    <ListPage
      head={
        <>
          <Title>API clients</Title>
          <ShownOnce of={secret}>
            New secret of client <Id of={owner.value} />.
          </ShownOnce>
          {may('operators:write_client') && <NewClient show={show} />}
        </>
      }
      list={list}
      name="API clients"
      none="There is no API client."
      columns={columnsOf(list.again, show, grace.value)}
    >
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
    </ListPage>
  )
}

/** A form for a new client: its name, and which of the operator's own scopes it gets. */
function NewClient({ show }: { show: (made: Made) => void }) {
  const own = session.value!.scopes?.filter((scope) => !scope.startsWith('operators:')) ?? []
  const chosen = useSignal<readonly string[]>([])
  return (
    <details>
      <summary>Create an API client</summary>
      <fieldset>
        <legend>
          Its scopes{' '}
          <button type="button" onClick={() => (chosen.value = chosen.value.length === 0 ? own : [])}>
            {chosen.value.length === 0 ? 'All' : 'None'}
          </button>
        </legend>
        <div class="checks-of">
          {own.map((scope) => (
            <label key={scope}>
              <input
                type="checkbox"
                checked={chosen.value.includes(scope)}
                onChange={() =>
                  (chosen.value = chosen.value.includes(scope)
                    ? chosen.value.filter((other) => other !== scope)
                    : [...chosen.value, scope])
                }
              />{' '}
              <code>{scope}</code>
            </label>
          ))}
        </div>
      </fieldset>
      <Action<Made>
        fields={[{ name: 'name', label: 'Name, for people' }]}
        call={({ name }) => post('/v2/operators/clients', { name, scopes: chosen.value })}
        kind="main"
        done={(answer) => {
          chosen.value = []
          show(answer)
        }}
      >
        Create
      </Action>
    </details>
  )
}

function columnsOf(again: () => void, show: (made: Made) => void, grace: string): Column<ApiClient>[] {
  return [
    { name: 'Client', cell: ({ client_id: id, name }) => <Actor of={{ id, name }} /> },
    { name: 'Status', cell: ({ status }) => <Status of={status} /> },
    { name: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
    { name: 'Last token', cell: ({ last_used_at: at }) => (at === undefined ? 'never' : <Time at={at} />) },
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
            <Action<Made>
              scope="api_creds:rotate_credentials"
              call={post(`${PATH}/${client_id}/rotate`, { grace_seconds: Number(grace) })}
              done={show}
              ask={`Make a new secret, and accept the previous one for ${GRACE[grace]}?`}
            >
              Rotate
            </Action>
            <Action
              scope="operators:write_client"
              summary="Rename"
              fields={[{ name: 'name', label: 'Name' }]}
              call={(body) => put(`/v2/operators/clients/${client_id}`, body)}
              done={() => again()}
            >
              Rename
            </Action>
            <Action
              scope="api_creds:delete_credentials"
              call={remove(`${PATH}/${client_id}`)}
              done={() => again()}
              ask="Delete it? Its secret and its access tokens end within a second."
              kind="danger"
            >
              Delete
            </Action>
          </>
        ),
    },
  ]
}
