import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { send, type Call } from '../api.ts'
import { Curl, Failure, Link, Loading, Status, Time } from '../parts.tsx'
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
export function UndeliveredEvents({ webhooks }: { webhooks: readonly Webhook[] | undefined }) {
  const found = useSignal<Undelivered[] | undefined>(undefined)
  const error = useSignal<unknown>(undefined)
  const states = webhooks?.map((one) => one.id + webhookState(one)).join()
  useEffect(() => {
    if (webhooks === undefined) return
    const control = new AbortController()
    Promise.all(webhooks.map((one) => undeliveredOf(one, control.signal))).then(
      (all) => {
        found.value = all.filter(
          ({ webhook, failed }) => webhookState(webhook) !== 'ACTIVE' || failed !== '0',
        )
        error.value = undefined
      },
      (reason: unknown) => {
        if (!control.signal.aborted) error.value = reason
      },
    )
    return () => control.abort()
  }, [states])
  return (
    <section class="part">
      <h2>Undelivered events</h2>
      <Failure of={error.value} />
      {found.value === undefined && error.value === undefined && <Loading />}
      {found.value?.length === 0 && <p class="quiet">Every webhook answers.</p>}
      <ul class="plain">
        {found.value?.map(({ webhook, waiting, failed }) => (
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
      {found.value?.[0] !== undefined && <Curl of={deliveriesOf(found.value[0].webhook, 'FAILED')} />}
    </section>
  )
}

async function undeliveredOf(webhook: Webhook, signal: AbortSignal): Promise<Undelivered> {
  const count = async (status: WebhookDelivery['status']) =>
    countOf(await send<Page<WebhookDelivery>>(deliveriesOf(webhook, status), { background: true, signal }))
  const [waiting, failed] = await Promise.all([count('PENDING'), count('FAILED')])
  return { webhook, waiting, failed }
}

const deliveriesOf = ({ id }: Webhook, status: WebhookDelivery['status']): Call => ({
  method: 'GET',
  path: `/v2/webhooks/${id}/deliveries`,
  query: { status, limit: COUNTED },
})
