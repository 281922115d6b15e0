import { randomBytes, randomUUID } from 'node:crypto'
import pg from 'pg'
import { Pool } from 'undici'
import { newCaller, type Bench } from './service.ts'

/**
 * The same transfers in Bursar and in other ledgers that somebody has built and started, in turns: between accounts whose funds
 * are checked, each with a key that makes a repeat pay once. The callers are in this process, and have 256 connections.
 */

/** A transfer of 1.00 between two accounts of an owner. */
export interface PeerTransfer {
  owner: number
  from: string
  to: string
  /** Differs for each transfer. TigerBeetle's client makes its own. */
  key: string
}

export interface Peer {
  name: string
  /** Makes accounts of an owner, who has a ledger where the program has several, each with a billion. */
  open(owner: number, count: number): Promise<string[]>
  /** Throws an Error unless the transfer was made. */
  transfer(transfer: PeerTransfer): Promise<unknown>
  /** Makes all of them, of the same owner, in one request. Absent where the program has no such request. */
  bulk?(transfers: readonly PeerTransfer[]): Promise<unknown>
  close(): Promise<unknown>
}

const CONNECTIONS = 256
const FUNDS = '1000000000'

/** Sends JSON, and returns the answer's. Throws an Error for another status than 2xx. */
type Send = <Answer>(
  method: 'POST' | 'PUT',
  path: string,
  body: object,
  headers?: Record<string, string>,
) => Promise<Answer>

function jsonClient(baseUrl: string): { send: Send; close: () => Promise<void> } {
  const pool = new Pool(baseUrl, { connections: CONNECTIONS, headersTimeout: 60_000 })
  return {
    async send<Answer>(
      method: 'POST' | 'PUT',
      path: string,
      body: object,
      headers: Record<string, string> = {},
    ) {
      const { statusCode, body: answer } = await pool.request({
        method,
        path,
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
      const text = await answer.text()
      if (statusCode >= 300)
        throw new Error(`${baseUrl}${path} answered ${statusCode}: ${text.slice(0, 300)}`)
      return (text === '' ? undefined : JSON.parse(text)) as Answer
    },
    close: () => pool.close(),
  }
}

/** Bursar over HTTP: internal transfers between profiles. An owner is a customer. */
export function bursar(bench: Bench, baseUrl: string): Peer {
  const { send, close } = jsonClient(baseUrl)
  const tokens: string[] = []
  const post = <Answer>(owner: number, path: string, body: object) =>
    send<Answer>('POST', path, body, { authorization: `Bearer ${tokens[owner]}` })
  return {
    name: 'Bursar',
    async open(owner, count) {
      const { token, profileIds } = await newCaller(bench, baseUrl, count)
      tokens[owner] = token
      return profileIds
    },
    transfer: ({ owner, from, to, key }) =>
      post(owner, '/v2/transfer/internal', {
        ref_id: key,
        asset: 'USDP',
        amount: '1.00',
        from_profile_id: from,
        to_profile_id: to,
      }),
    // Requests of many are for withdrawals only: the receiver is an address, not a profile.
    async bulk(transfers) {
      const path = '/v2/transfer/crypto-withdrawals/bulk'
      const { items } = await post<{ items: object[] }>(transfers[0]!.owner, path, {
        withdrawals: transfers.map(({ from, key }) => ({
          profile_id: from,
          asset: 'USDP',
          amount: '1.00',
          ref_id: key,
          crypto_network: 'ETHEREUM',
          destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
        })),
      })
      if (!items.every((item) => 'transfer' in item)) throw new Error('Bursar refused a withdrawal')
    },
    close,
  }
}

/** Formance Ledger over HTTP. */
function formance(baseUrl: string): Peer {
  const { send, close } = jsonClient(baseUrl)
  const prefix = `bench${randomBytes(4).toString('hex')}`
  const postingOf = (source: string, destination: string, amount: number) => ({
    postings: [{ source, destination, amount, asset: 'USD/2' }],
  })
  return {
    name: 'Formance Ledger',
    async open(owner, count) {
      await send('POST', `/v2/${prefix}${owner}`, {})
      const accounts = Array.from({ length: count }, (_, n) => `accounts:${n}`)
      for (const account of accounts)
        await send(
          'POST',
          `/v2/${prefix}${owner}/transactions`,
          postingOf('world', account, Number(FUNDS) * 100),
        )
      return accounts
    },
    transfer: ({ owner, from, to, key }) =>
      send(
        'POST',
        `/v2/${prefix}${owner}/transactions`,
        { ...postingOf(from, to, 100), reference: key },
        { 'idempotency-key': key },
      ),
    bulk: (transfers) =>
      send(
        'POST',
        `/v2/${prefix}${transfers[0]!.owner}/_bulk`,
        transfers.map(({ from, to, key }) => ({
          action: 'CREATE_TRANSACTION',
          ik: key,
          data: { ...postingOf(from, to, 100), reference: key },
        })),
      ),
    close,
  }
}

/** Blnk over HTTP, without its queue: an answer means that the transfer is made. */
function blnk(baseUrl: string): Peer {
  const { send, close } = jsonClient(baseUrl)
  const common = { precision: 100, currency: 'USD', description: 'bench', skip_queue: true }
  const transferOf = (source: string, destination: string, precise_amount: number, reference: string) => ({
    ...common,
    precise_amount,
    reference,
    source,
    destination,
  })
  return {
    name: 'Blnk',
    async open(owner, count) {
      const { ledger_id } = await send<{ ledger_id: string }>('POST', '/ledgers', {
        name: `bench ${owner} ${randomUUID()}`,
      })
      const accounts: string[] = []
      for (let n = 0; n < count; n++) {
        const { balance_id } = await send<{ balance_id: string }>('POST', '/balances', {
          ledger_id,
          currency: 'USD',
        })
        await send('POST', '/transactions', {
          ...transferOf('@world', balance_id, Number(FUNDS) * 100, randomUUID()),
          allow_overdraft: true,
        })
        accounts.push(balance_id)
      }
      return accounts
    },
    transfer: ({ from, to, key }) => send('POST', '/transactions', transferOf(from, to, 100, key)),
    bulk: (transfers) =>
      send('POST', '/transactions/bulk', {
        atomic: false,
        inflight: false,
        run_async: false,
        skip_queue: true,
        transactions: transfers.map(({ from, to, key }) => transferOf(from, to, 100, key)),
      }),
    close,
  }
}

/** pgledger: functions in PostgreSQL, called without HTTP. It knows no keys, so each transfer also inserts one into a table. */
function pgledger(url: string): Peer {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS })
  return {
    name: 'pgledger',
    async open(_owner, count) {
      await pool.query('create table if not exists bench_keys (key text primary key)')
      const make = async (name: string, allowNegative: boolean) => {
        const { rows } = await pool.query<{ id: string }>(
          'select id from pgledger_create_account($1, $2, allow_negative_balance => $3)',
          [name, 'USD', allowNegative],
        )
        return rows[0]!.id
      }
      const world = await make(`world ${randomUUID()}`, true)
      const accounts: string[] = []
      for (let n = 0; n < count; n++) {
        const account = await make(`account ${randomUUID()}`, false)
        await pool.query('select from pgledger_create_transfer($1, $2, $3)', [world, account, FUNDS])
        accounts.push(account)
      }
      return accounts
    },
    transfer: ({ from, to, key }) =>
      pool.query({
        name: 'transfer',
        text: `with new as (insert into bench_keys values ($4))
               select id from pgledger_create_transfer($1, $2, $3)`,
        values: [from, to, '1.00', key],
      }),
    bulk: (transfers) =>
      pool.query({
        name: 'transfers',
        text: `with new as (insert into bench_keys select unnest($3::text[]))
               select id from pgledger_create_transfers(array(
                 select row(payer, receiver, 1.00)::transfer_request
                 from unnest($1::text[], $2::text[]) as t (payer, receiver)))`,
        values: [
          transfers.map(({ from }) => from),
          transfers.map(({ to }) => to),
          transfers.map(({ key }) => key),
        ],
      }),
    close: () => pool.end(),
  }
}

/** What the client of TigerBeetle's package has that is used here: whoever measures installs the package beside its server. */
interface TigerBeetleClient {
  createAccounts(accounts: object[]): Promise<object[]>
  createTransfers(transfers: object[]): Promise<object[]>
  destroy(): void
}

/** TigerBeetle through its own client, which joins the transfers of all callers into requests. */
async function tigerBeetle(url: string): Promise<Peer> {
  const name = 'tigerbeetle-node'
  const { createClient, id, AccountFlags } = (await import(name)) as {
    createClient: (options: { cluster_id: bigint; replica_addresses: string[] }) => TigerBeetleClient
    id: () => bigint
    AccountFlags: { debits_must_not_exceed_credits: number }
  }
  const client = createClient({ cluster_id: 0n, replica_addresses: [new URL(url).host] })
  const common = { user_data_128: 0n, user_data_64: 0n, user_data_32: 0, timestamp: 0n, code: 1 }
  const accountOf = (owner: number, flags: number) => ({
    ...common,
    ledger: owner + 1,
    debits_pending: 0n,
    debits_posted: 0n,
    credits_pending: 0n,
    credits_posted: 0n,
    id: id(),
    flags,
    reserved: 0,
  })
  const transferOf = (owner: number, from: string, to: string, amount: bigint) => ({
    ...common,
    ledger: owner + 1,
    id: id(),
    debit_account_id: BigInt(from),
    credit_account_id: BigInt(to),
    amount,
    pending_id: 0n,
    timeout: 0,
    flags: 0,
  })
  const make = async (transfers: object[]) => {
    const refused = (await client.createTransfers(transfers)).filter((result) => isRefusal(result))
    if (refused.length > 0) throw new Error(`TigerBeetle refused ${refused.length} transfers`)
  }
  return {
    name: 'TigerBeetle',
    async open(owner, count) {
      const world = accountOf(owner, 0)
      const accounts = Array.from({ length: count }, () =>
        accountOf(owner, AccountFlags.debits_must_not_exceed_credits),
      )
      await client.createAccounts([world, ...accounts])
      const ids = accounts.map((account) => String(account.id))
      await make(ids.map((account) => transferOf(owner, String(world.id), account, BigInt(FUNDS) * 100n)))
      return ids
    },
    transfer: ({ owner, from, to }) => make([transferOf(owner, from, to, 100n)]),
    bulk: (transfers) => make(transfers.map(({ owner, from, to }) => transferOf(owner, from, to, 100n))),
    close: () => Promise.resolve(client.destroy()),
  }
}

/** Versions of the client before 0.17 list only refusals; later ones list each transfer with its status. */
const isRefusal = (result: object) => !('status' in result) || result.status !== CREATED
const CREATED = 0xffffffff

const PEERS: Record<string, (url: string) => Peer | Promise<Peer>> = {
  formance,
  blnk,
  pgledger,
  tigerbeetle: tigerBeetle,
}

/** Connects to the peers of a list like `formance=http://127.0.0.1:3068,pgledger=postgres://...`. */
export const connectPeers = (list: string): Promise<Peer[]> =>
  Promise.all(
    list
      .split(',')
      .filter(Boolean)
      .map(async (peer) => {
        const [name, url] = peer.split(/=(.*)/s)
        const connect = PEERS[name!]
        if (connect === undefined)
          throw new Error(`--peers knows ${Object.keys(PEERS).join(', ')}, not ${peer}`)
        return connect(url!)
      }),
  )
