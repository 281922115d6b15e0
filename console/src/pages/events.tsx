import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { address, setQuery } from '../address.ts'
import { Action } from '../action.tsx'
import { onEvents } from '../live.ts'
import { Choice, filterOf, Filters, ListOf, Table, useList, type Column } from '../list.tsx'
import { useCall } from '../load.ts'
import { Curl, Failure, Id, Status, Time, Title } from '../parts.tsx'
import {
  pageOf,
  type Attempt,
  type Event,
  type Page,
  type Webhook,
  type WebhookDelivery,
  webhookState,
} from '../records.ts'
import { may } from '../session.ts'

/** Events as they happen, the webhooks that get them, and each attempt to deliver them. */

const KINDS = [
  'transfer.*',
  'orchestration.*',
  'statement.*',
  'identity.*',
  'account.*',
  'approval.*',
  'webhook.*',
]

const COLUMNS: Column<Event>[] = [
  { name: 'Time', cell: ({ created_at }) => <Time at={created_at} /> },
  { name: 'Type', cell: ({ type }) => <code>{type}</code> },
  {
    name: 'Record',
    cell: ({ type, object: { id } }) => {
      const page = pageOf({ type: type.split('.')[0]!, id })
      return page === undefined ? <Id of={id} /> : <Id of={id} to={page} />
    },
  },
  { name: 'Undelivered', number: true, cell: ({ undelivered_webhooks }) => undelivered_webhooks },
  { name: 'Event', cell: ({ id }) => <Id of={id} /> },
]
export function EventsPage() {
  const types = filterOf('types')
  const list = useList<Event>('/v2/events', { types, order: 'DESC' })
  const { isFirst, again } = list
  useEffect(() => (isFirst ? onEvents(() => again(true)) : undefined), [isFirst, types])
  return (
    <>
      <Title>Events and webhooks</Title>
      {may('webhooks:read_webhook') && <Webhooks />}
      <h2>All events, newest first</h2>
      <Filters>
        <Choice name="Type" filter="types" of={KINDS} say={(kind) => kind} />
      </Filters>
      <ListOf
        list={list}
        name="Events"
        none="There is no such event."
        columns={COLUMNS}
        keyOf={({ id }) => id}
      />
    </>
  )
}

const webhooks = { method: 'GET', path: '/v2/webhooks', query: { limit: 100 } } as const

function Webhooks() {
  const { data, error } = useCall<Page<Webhook>>(webhooks)
  const chosen = address.value.query.get('webhook')
  return (
    <section>
      <h2>Webhooks</h2>
      <Failure of={error.value} />
      {data.value?.items.length === 0 && <p class="quiet">There is no webhook.</p>}
      {data.value !== undefined && data.value.items.length > 0 && (
        <Table
          name="Webhooks"
          items={data.value.items}
          keyOf={({ id }) => id}
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
            { name: 'URL', onCard: 3, cell: ({ url }) => <code class="ref">{url}</code> },
            { name: 'Events', onCard: 4, cell: ({ event_types }) => event_types.join(', ') },
            {
              name: 'Failing since',
              cell: ({ failing_since }) => failing_since !== undefined && <Time at={failing_since} />,
            },
          ]}
        />
      )}
      {chosen !== null && <Deliveries key={chosen} webhookId={chosen} />}
    </section>
  )
}

/** The deliveries of a webhook that need a look, and those that arrived. */
function Deliveries({ webhookId }: { webhookId: string }) {
  const call = { method: 'GET', path: `/v2/webhooks/${webhookId}/deliveries`, query: { limit: 20 } } as const
  const { data, error, again } = useCall<Page<WebhookDelivery>>(call)
  const opened = useSignal('')
  return (
    <>
      <h3>Latest deliveries</h3>
      <Failure of={error.value} />
      {data.value?.items.length === 0 && <p class="quiet">Nothing was sent to it yet.</p>}
      <ul class="deliveries">
        {data.value?.items.map(({ id, status, attempts, event_type, created_at }) => (
          <li key={id}>
            <Time at={created_at} precise /> <Status of={status} /> <code>{event_type}</code>{' '}
            <button
              type="button"
              aria-expanded={opened.value === id}
              onClick={() => (opened.value = opened.value === id ? '' : id)}
            >
              {attempts === 1 ? '1 attempt' : `${attempts} attempts`}
            </button>{' '}
            {may('webhooks:write_webhook') && (
              <Action
                call={{ method: 'POST', path: `/v2/events/${id}/resend`, body: { webhook_id: webhookId } }}
                done={() => again()}
              >
                Send again
              </Action>
            )}
            {opened.value === id && <Attempts webhookId={webhookId} deliveryId={id} />}
          </li>
        ))}
      </ul>
      <Curl of={call} />
    </>
  )
}

function Attempts({ webhookId, deliveryId }: { webhookId: string; deliveryId: string }) {
  const { data, error } = useCall<Page<Attempt>>({
    method: 'GET',
    path: `/v2/webhooks/${webhookId}/deliveries/${deliveryId}/attempts`,
  })
  return (
    <>
      <Failure of={error.value} />
      <ol>
        {data.value?.items.map(
          ({ id, attempt, status_code, error: why, duration_ms, response, created_at }) => (
            <li key={id}>
              <Time at={created_at} precise /> attempt {attempt}: {status_code ?? 'no answer'} after{' '}
              {duration_ms} ms {why}
              {response !== undefined && <pre tabIndex={0}>{response}</pre>}
            </li>
          ),
        )}
      </ol>
    </>
  )
}
