import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { address, setQuery } from '../address.ts'
import { Action } from '../action.tsx'
import { get, post } from '../api.ts'
import { dayOf } from '../format.ts'
import { Choice, filterOf, useList, type Column } from '../list.tsx'
import { useCall, useFresh } from '../load.ts'
import { Failure, Id, Name, ShownOnce, Status, Time, Title } from '../parts.tsx'
import { pageOf, webhookState } from '../records.ts'
import type { Attempt, Event, Page, Webhook, WebhookDelivery } from '../records.ts'
import { may } from '../session.ts'
import { ListPage, TableOf } from '../tables.tsx'

/** Events as they happen, the webhooks that get them, and each attempt to deliver them. */

const WRITE = 'webhooks:write_webhook'
const RECORDS = ['transfer', 'orchestration', 'statement', 'identity', 'account', 'approval', 'webhook']
const KINDS = RECORDS.map((record) => `${record}.*`)

const COLUMNS: Column<Event>[] = [
  { name: 'Time', cell: ({ created_at }) => <Time at={created_at} /> },
  { name: 'Type', cell: ({ type }) => <code>{type}</code> },
  {
    name: 'Record',
    cell: ({ type, object: { id } }) => <Id of={id} to={pageOf({ type: type.split('.')[0]!, id })} />,
  },
  { name: 'Undelivered', number: true, cell: ({ undelivered_webhooks }) => undelivered_webhooks },
  { name: 'Event', cell: ({ id }) => <Id of={id} /> },
]
export function EventsPage() {
  const types = filterOf('types')
  const list = useList<Event>('/v2/events', { types, order: 'DESC' })
  useFresh(list.isFirst ? list.again : undefined)
  return (
    <ListPage
      head={
        <>
          <Title>Events and webhooks</Title>
          {may('webhooks:read_webhook') && <Webhooks />}
          <h2>All events, newest first</h2>
        </>
      }
      list={list}
      name="Events"
      none="There is no such event."
      columns={COLUMNS}
    >
      <Choice name="Type" filter="types" of={KINDS} say={(kind) => kind} />
    </ListPage>
  )
}

const webhooks = get('/v2/webhooks', { limit: 100 })

function Webhooks() {
  const secret = useSignal('')
  const read = useCall<Page<Webhook>>(webhooks)
  const chosen = address.value.query.get('webhook')
  const shown = read.data.value?.items.find(({ id }) => id === chosen)
  return (
    <section>
      <h2>Webhooks</h2>
      <TableOf
        of={read}
        name="Webhooks"
        none="There is no webhook."
        isPart
        columns={[
          {
            name: 'Webhook',
            onCard: 1,
            cell: ({ id, name }) => (
              <button
                type="button"
                aria-pressed={id === chosen}
                onClick={() => setQuery({ webhook: id === chosen ? '' : id })}
              >
                {name}
              </button>
            ),
          },
          { name: 'Status', onCard: 2, cell: (webhook) => <Status of={webhookState(webhook)} /> },
          { name: 'URL', onCard: 3, cell: ({ url }) => <Name of={url} /> },
          { name: 'Events', onCard: 4, cell: ({ event_types }) => event_types.join(', ') },
          { name: 'Failing since', cell: ({ failing_since: at }) => at !== undefined && <Time at={at} /> },
        ]}
      />
      {shown !== undefined && <Deliveries key={shown.id} webhook={shown} />}
      <ShownOnce of={secret}>The signing secret of the new webhook.</ShownOnce>
      <Action<{ secret: string }>
        scope={WRITE}
        summary="Create a webhook"
        fields={[
          { name: 'name', label: 'Name' },
          { name: 'url', label: 'URL', size: 40, placeholder: 'https://' },
          { name: 'event_types', label: 'Events, with commas between', size: 24, value: '*' },
        ]}
        call={({ name, url, event_types = '' }) =>
          post(webhooks.path, {
            name,
            url,
            event_types: event_types.split(/[\s,]+/).filter((type) => type !== ''),
          })
        }
        kind="main"
        done={(answer) => {
          secret.value = answer.secret
          read.again()
        }}
      >
        Create
      </Action>
    </section>
  )
}

/** A webhook's latest deliveries, and the actions on those that did not arrive. */
function Deliveries({ webhook }: { webhook: Webhook }) {
  const call = get(`/v2/webhooks/${webhook.id}/deliveries`, { limit: 20 })
  const read = useCall<Page<WebhookDelivery>>(call)
  return (
    <>
      <h3>Latest deliveries</h3>
      {may(WRITE) && webhook.status === 'ACTIVE' && <Actions webhook={webhook} again={() => read.again()} />}
      <TableOf
        of={read}
        call={call}
        name="Latest deliveries"
        none="Nothing was sent to it yet."
        columns={deliveryColumns(webhook.id, () => read.again())}
        isPart
      />
    </>
  )
}

const deliveryColumns = (webhookId: string, again: () => void): Column<WebhookDelivery>[] => [
  { name: 'Time', onCard: 3, cell: ({ created_at }) => <Time at={created_at} precise /> },
  { name: 'Event', onCard: 1, cell: ({ event_type }) => <code>{event_type}</code> },
  { name: 'Status', onCard: 2, cell: ({ status }) => <Status of={status} /> },
  { name: 'Attempts', onCard: 4, cell: (delivery) => <AttemptsOf delivery={delivery} again={again} /> },
  {
    name: 'Actions',
    onCard: 5,
    cell: ({ id }) => (
      <Action scope={WRITE} call={post(`/v2/events/${id}/resend`, { webhook_id: webhookId })} done={again}>
        Send again
      </Action>
    ),
  },
]

/** How far back "Send all again" goes for a webhook that is not failing now. */
const RECOVERED_DAYS = 7
const TEST = 'transfer.crypto_withdrawal.completed'

function Actions({ webhook: { id, failing_since }, again }: { webhook: Webhook; again: () => void }) {
  const path = `/v2/webhooks/${id}`
  const since = useMemo(
    () => failing_since ?? new Date(Date.now() - RECOVERED_DAYS * 86_400_000).toISOString(),
    [failing_since],
  )
  /** Where the next press goes on: one request examines a limited number of events. */
  const cursor = useSignal<string | undefined>(undefined)
  const said = useSignal('')
  const secret = useSignal('')
  return (
    <>
      <div class="buttons">
        <Action call={post(`${path}/test`, { type: TEST })} done={again}>
          Send a test event
        </Action>
        <Action<{ recovered: number; next_page_cursor?: string }>
          call={post(`${path}/recover`, { since, page_cursor: cursor.value })}
          ask={
            cursor.value === undefined
              ? `Send again each event since ${dayOf(since)} that did not arrive?`
              : undefined
          }
          done={({ recovered, next_page_cursor }) => {
            cursor.value = next_page_cursor
            said.value = `${recovered} events are sent again${next_page_cursor === undefined ? '.' : ', and there are more.'}`
            again()
          }}
        >
          {cursor.value === undefined ? 'Send all again' : 'Send the next ones again'}
        </Action>
        <Action<{ secret: string }>
          call={post(`${path}/rotate-secret`, {})}
          ask="Make a new signing secret? For a day, the previous one signs, too."
          done={(answer) => (secret.value = answer.secret)}
        >
          Rotate the secret
        </Action>
      </div>
      <div role="status">{said.value}</div>
      <ShownOnce of={secret}>The new signing secret.</ShownOnce>
    </>
  )
}

/** When an attempt to deliver an event was made, and what the webhook answered. */
export const AttemptLine = ({ of: { attempt, status_code, duration_ms, created_at } }: { of: Attempt }) => (
  <>
    <Time at={created_at} precise /> attempt {attempt}: {status_code ?? 'no answer'} after {duration_ms} ms
  </>
)

/** The number of attempts, and each of them when it is opened. */
function AttemptsOf({
  delivery: { id, webhook_id, attempts },
  again,
}: {
  delivery: WebhookDelivery
  again: () => void
}) {
  const isOpen = useSignal(false)
  const path = `/v2/webhooks/${webhook_id}/deliveries/${id}/attempts`
  const { data, error } = useCall<Page<Attempt>>(isOpen.value ? get(path) : undefined)
  return (
    <details
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open
        // There may have been attempts since the list was read.
        if (currentTarget.open) again()
      }}
    >
      <summary>{attempts === 1 ? '1 attempt' : `${attempts} attempts`}</summary>
      <Failure of={error.value} />
      <ul class="plain">
        {data.value?.items.map((attempt) => (
          <li key={attempt.id}>
            <AttemptLine of={attempt} /> {attempt.error}
            {attempt.response !== undefined && <pre tabIndex={0}>{attempt.response}</pre>}
          </li>
        ))}
      </ul>
    </details>
  )
}
