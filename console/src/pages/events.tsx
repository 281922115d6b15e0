import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { address, setQuery } from '../address.ts'
import { send } from '../api.ts'
import { onEvents } from '../live.ts'
import { useCall } from '../load.ts'
import { Curl, Failure, Id, Link, Loading, Pager, Status, Time, Title } from '../parts.tsx'
import type { Attempt, Event, Page, Webhook, WebhookDelivery } from '../records.ts'
import { may } from '../session.ts'

/** Events as they happen, the webhooks that get them, and each attempt to deliver them. */

const PAGE_SIZE = 50
const KINDS = [
  'transfer.*',
  'orchestration.*',
  'statement.*',
  'identity.*',
  'account.*',
  'approval.*',
  'webhook.*',
]

export function EventsPage() {
  const { query } = address.value
  const cursor = query.get('cursor') ?? ''
  const call = {
    method: 'GET',
    path: '/v2/events',
    query: { types: query.get('types') ?? '', order: 'DESC', limit: PAGE_SIZE, page_cursor: cursor },
  } as const
  const { data, error, again } = useCall<Page<Event>>(call)
  useEffect(() => (cursor === '' ? onEvents(() => again(true)) : undefined), [cursor, query.get('types')])
  return (
    <>
      <Title>Events</Title>
      {may('webhooks:read_webhook') && <Webhooks />}
      <h2>All events, newest first</h2>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Type
          <select
            value={query.get('types') ?? ''}
            onChange={({ currentTarget }) => setQuery({ types: currentTarget.value, cursor: '' })}
          >
            <option value="">Any</option>
            {KINDS.map((kind) => (
              <option key={kind}>{kind}</option>
            ))}
          </select>
        </label>
      </form>
      <Failure of={error.value} />
      {data.value === undefined && error.value === undefined && <Loading />}
      <div class="scroll" tabIndex={0} role="region" aria-label="Events">
        <table>
          <thead>
            <tr>
              <th>Time</th>
              <th>Type</th>
              <th>Record</th>
              <th class="number">Undelivered</th>
              <th>Event</th>
            </tr>
          </thead>
          <tbody>
            {data.value?.items.map((event) => (
              <EventLine key={event.id} event={event} />
            ))}
          </tbody>
        </table>
      </div>
      <Pager next={data.value?.next_page_cursor} />
      <Curl of={call} />
    </>
  )
}

function EventLine({ event: { id, type, object, created_at, undelivered_webhooks } }: { event: Event }) {
  const page = type.startsWith('transfer.') ? `transfers/${object.id}` : undefined
  return (
    <tr>
      <td>
        <Time at={created_at} />
      </td>
      <td>
        <code>{type}</code>
      </td>
      <td>{page === undefined ? <Id of={object.id} /> : <Link to={page}>{object.id}</Link>}</td>
      <td class="number">{undelivered_webhooks}</td>
      <td>
        <Id of={id} />
      </td>
    </tr>
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
      <div class="scroll" tabIndex={0} role="region" aria-label="Webhooks">
        <table>
          <tbody>
            {data.value?.items.map(({ id, name, url, status, failing_since, event_types }) => (
              <tr key={id}>
                <td>
                  <button
                    type="button"
                    aria-pressed={id === chosen}
                    onClick={() => setQuery({ webhook: id === chosen ? '' : id })}
                  >
                    {name}
                  </button>
                </td>
                <td>
                  <Status of={status} />
                </td>
                <td>
                  <code>{url}</code>
                </td>
                <td>{event_types.join(', ')}</td>
                <td>
                  {failing_since !== undefined && (
                    <>
                      fails since <Time at={failing_since} />
                    </>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {chosen !== null && <Deliveries key={chosen} webhookId={chosen} />}
    </section>
  )
}

/** The deliveries of a webhook that need a look, and those that arrived. */
function Deliveries({ webhookId }: { webhookId: string }) {
  const call = { method: 'GET', path: `/v2/webhooks/${webhookId}/deliveries`, query: { limit: 20 } } as const
  const { data, error, again } = useCall<Page<WebhookDelivery>>(call)
  const opened = useSignal('')
  const failed = useSignal<unknown>(undefined)
  const resend = (id: string) => {
    failed.value = undefined
    void send({ method: 'POST', path: `/v2/events/${id}/resend`, body: { webhook_id: webhookId } }).then(
      () => again(),
      (reason: unknown) => (failed.value = reason),
    )
  }
  return (
    <>
      <h3>Latest deliveries</h3>
      <Failure of={error.value ?? failed.value} />
      {data.value?.items.length === 0 && <p class="quiet">Nothing was sent to it yet.</p>}
      <ul class="deliveries">
        {data.value?.items.map(({ id, status, attempts, event_type, created_at }) => (
          <li key={id}>
            <Time at={created_at} /> <Status of={status} /> <code>{event_type}</code>{' '}
            <button
              type="button"
              aria-expanded={opened.value === id}
              onClick={() => (opened.value = opened.value === id ? '' : id)}
            >
              {attempts} attempts
            </button>{' '}
            {may('webhooks:write_webhook') && (
              <button type="button" onClick={() => resend(id)}>
                Send again
              </button>
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
              <Time at={created_at} /> attempt {attempt}: {status_code ?? 'no answer'} after {duration_ms} ms{' '}
              {why}
              {response !== undefined && <pre tabIndex={0}>{response}</pre>}
            </li>
          ),
        )}
      </ol>
    </>
  )
}
