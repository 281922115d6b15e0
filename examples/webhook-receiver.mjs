// Receives the deliveries of a webhook: verifies each signature, handles each event once, and answers at once.
// WEBHOOK_SECRET is the secret that was shown when the webhook was created; PORT is where it listens (default 4000).
// The library exists for nine languages: https://www.standardwebhooks.com
import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'

const webhook = new Webhook(process.env.WEBHOOK_SECRET)
// In your service: a unique column of your database, written in the transaction that handles the event.
const handled = new Set()

createServer(async (request, reply) => {
  // The signature covers the bytes of the body as they came, so read them before you parse them.
  const parts = []
  for await (const part of request) parts.push(part)
  let event
  try {
    event = webhook.verify(Buffer.concat(parts).toString(), request.headers)
  } catch {
    return reply.writeHead(400).end('the signature is wrong')
  }
  // The same event may come twice: its id is the same then.
  const isNew = !handled.has(event.id)
  handled.add(event.id)
  // Answer first, work later: an answer after 15 seconds counts as a failure.
  reply.writeHead(204).end()
  // Types that you do not know may come at any time: ignore them.
  if (isNew) console.log(event.type, event.id)
}).listen(Number(process.env.PORT ?? 4000), '127.0.0.1', function () {
  console.log(`listening on http://127.0.0.1:${this.address().port}`)
})
