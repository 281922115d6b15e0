import { Action } from '../action.tsx'
import { get, post, remove, send } from '../api.ts'
import { inWords } from '../format.ts'
import type { Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Id, Status, Time, Title } from '../parts.tsx'
import type { OwnSession, Passkey } from '../records.ts'
import { readSession, session } from '../session.ts'
import { TableOf } from '../tables.tsx'

/** The operator's own ways to sign in: its passkeys, and its sessions. */

const passkeys = get('/v2/operators/passkeys')
const sessions = get('/v2/operators/sessions')

export function OwnSignInPage() {
  const { name, role } = session.value!.operator
  return (
    <>
      <Title>Your sign-in</Title>
      <p>
        {name}, {inWords(role)}. This session ends at <Time at={session.value!.expires_at} />, or after an
        hour in which nobody uses the page.
      </p>
      <Passkeys />
      <Sessions />
    </>
  )
}

function Passkeys() {
  const read = useCall<{ items: Passkey[] }>(passkeys)
  const columns: Column<Passkey>[] = [
    { name: 'Name', cell: ({ name }) => name },
    { name: 'Id', cell: ({ id }) => <Id of={id} /> },
    { name: 'Added', cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: 'Last sign-in',
      cell: ({ last_used_at }) => (last_used_at === undefined ? 'never' : <Time at={last_used_at} />),
    },
    {
      name: 'Remove',
      cell: ({ id, name }) => (
        <Action
          scope="operators:delete_passkey"
          call={remove(`${passkeys.path}/${id}`)}
          // The sessions that the passkey opened end with it, perhaps this one.
          done={() => void readSession().then((found) => found && read.again())}
          ask={`Remove the passkey ${name}, and end the sessions that it opened?`}
        >
          Remove
        </Action>
      ),
    },
  ]
  return (
    <section>
      <h2>Passkeys</h2>
      <TableOf
        of={read}
        call={passkeys}
        name="Passkeys"
        none="None yet. A passkey signs in without a link: this device, or a key, asks for you."
        columns={columns}
      />
      <Action
        fields={[{ name: 'name', label: 'Name of the new passkey', placeholder: 'such as: laptop' }]}
        work={({ name = '' }) => addPasskey(name)}
        done={() => read.again()}
      >
        Add a passkey
      </Action>
    </section>
  )
}

/** Asks the browser for a new passkey and gives it to the service. The person confirms it at the device. */
async function addPasskey(name: string): Promise<void> {
  const { path } = passkeys
  const options = await send<PublicKeyCredentialCreationOptionsJSON>(post(`${path}/options`, {}))
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
  const credential = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential
  await send(post(path, { name, response: credential.toJSON() as object }))
}

function Sessions() {
  const read = useCall<{ items: OwnSession[] }>(sessions)
  const columns: Column<OwnSession>[] = [
    { name: 'Began', cell: ({ created_at }) => <Time at={created_at} /> },
    { name: 'With', cell: ({ method }) => (method === 'OPENID' ? 'OpenID' : inWords(method)) },
    { name: 'Last used', cell: ({ last_used_at }) => <Time at={last_used_at} /> },
    { name: 'Status', cell: ({ status }) => <Status of={status} /> },
    {
      name: 'End',
      cell: ({ id, status }) =>
        status === 'OPEN' && (
          <Action
            scope="operators:delete_session"
            call={remove(`${sessions.path}/${id}`)}
            done={() => void readSession().then((found) => found && read.again())}
            ask="End this session?"
          >
            End
          </Action>
        ),
    },
  ]
  return (
    <section>
      <h2>Sessions</h2>
      <TableOf of={read} call={sessions} name="Sessions" columns={columns} />
    </section>
  )
}
