// Receives the deliveries of a webhook: verifies each signature, handles each event once, and answers at once.
// WEBHOOK_SECRET is the secret that was shown when the webhook was created; PORT is where it listens (default 4000).
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { BursarSignatureError, unwrap } from '@bursar/client'

// In your service: a unique column of your database, written in the transaction that handles the event.
const handled = new Set()

createServer(async (request, reply) => {
  let event
  try {
    // The signature covers the body as it came, so nothing may parse it before.
    event = await unwrap(await text(request), request.headers, process.env.WEBHOOK_SECRET)
  } catch (error) {
    return reply.writeHead(error instanceof BursarSignatureError ? 400 : 500).end(error.message)
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
