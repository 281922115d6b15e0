import { type Call, get, send } from '../api.ts'
import { useEach, type Loaded } from '../load.ts'
import { Curl, Link, Status, Time } from '../parts.tsx'
import { countOf, webhookState, type Page, type Webhook, type WebhookDelivery } from '../records.ts'

const COUNTED = 100

/** The counts of a webhook's undelivered events. */
interface Undelivered {
  webhook: Webhook
  /** Events with an attempt to come, and events given up. `+` after a count means: at least. */
  waiting: string
  failed: string
}

/** The webhooks that are failing or disabled, and those with events that were given up. */
export function useUndelivered(
  webhooks: readonly Webhook[] | undefined,
): Omit<Loaded<Undelivered[]>, 'again' | 'data'> & { items: Undelivered[] | undefined } {
  const { data, error } = useEach(webhooks, (webhook) => webhook.id + webhookState(webhook), undeliveredOf)
  return {
    items: data.value?.filter(({ webhook, failed }) => webhookState(webhook) !== 'ACTIVE' || failed !== '0'),
    error,
  }
}

export const UndeliveredEvents = ({ items }: { items: readonly Undelivered[] }) => (
  <>
    <ul class="plain">
      {items.map(({ webhook, waiting, failed }) => (
        <li key={webhook.id}>
          <Link to={`events?webhook=${webhook.id}`}>{webhook.name}</Link>{' '}
          <Status of={webhookState(webhook)} />
          <div class="quiet">
            {webhook.failing_since !== undefined && (
              <>
                since <Time at={webhook.failing_since} />:{' '}
              </>
            )}
            {waiting} to deliver, {failed} given up
          </div>
        </li>
      ))}
    </ul>
    {items[0] !== undefined && <Curl of={deliveriesOf(items[0].webhook, 'FAILED')} />}
  </>
)

async function undeliveredOf(webhook: Webhook, signal: AbortSignal): Promise<Undelivered> {
  const count = async (status: WebhookDelivery['status']) =>
    countOf(await send<Page<WebhookDelivery>>(deliveriesOf(webhook, status), { background: true, signal }))
  const [waiting, failed] = await Promise.all([count('PENDING'), count('FAILED')])
  return { webhook, waiting, failed }
}

const deliveriesOf = ({ id }: Webhook, status: WebhookDelivery['status']): Call =>
  get(`/v2/webhooks/${id}/deliveries`, { status, limit: COUNTED })
