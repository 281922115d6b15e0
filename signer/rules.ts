import { verify } from 'node:crypto'
import { lstatSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Hex } from 'viem'
import { parseAmount } from '../src/contract/assets/amount.ts'
import { PLATFORM_ID } from '../src/db/ids.ts'
import type { SigningEvidence } from '../src/contract/approval.ts'
import { unlessUnreadable } from '../src/networks/signed-payment.ts'
import { objectionToSignature, thumbprintOf } from '../src/governance/approvals/approval-statement.ts'
import { decimalsOn, type SignerConfig } from './config.ts'
import type { SignerNetwork, Wallet } from './family.ts'
import { demand, demandFee, Early, Refused, requireHex } from './refused.ts'
import { leftBy, type Journal } from './journal.ts'
import type { SignLine } from './journal-lines.ts'
import type { Leaving } from './windows.ts'

/** A payment of a network, with what proves that it was accepted. */
export interface PaymentToJudge extends SigningEvidence {
  network: string
  /** The heads of the journal that the worker has seen. */
  journal_heads?: string[]
}

/** What a worker asks: to sign these unsigned bytes for a wallet, which pay accepted withdrawals in this order. */
export interface SignRequest {
  network: string
  wallet: string
  unsigned: Hex
  payments: readonly SigningEvidence[]
  journal_heads?: string[]
}

/** A request that the rules allow: what is written to the journal, and who signs it. */
export interface Allowed {
  lines: SignLine[]
  wallet: Wallet
}
/** As many as the largest transaction pays. */
const PAYMENTS_MAX = 250

/** Most that the clock may differ from the time that has passed, or be behind the journal. */
const CLOCK_MS_MAX = 60_000

/**
 * The clock by which windows count: the time since the first question, so that a clock that is set opens none. It throws
 * Refused while the machine's clock is more than a minute from it, or was behind the journal from the start.
 */
export function steadyClock(journal: Pick<Journal, 'newest'>): () => Date {
  let begun: number | undefined
  return () => {
    const [now, passed, newest] = [Date.now(), performance.now(), new Date(journal.newest)]
    const off = now - (begun === undefined ? Math.max(now, journal.newest) : begun + passed)
    const [from, otherwise] =
      begun === undefined
        ? [`the journal's newest line, of ${newest.toISOString()}`, 'was ahead before: wait until then']
        : ['the time since the start', 'was wrong, or the machine was suspended: start the signer again']
    const remedy = `compare it with another clock and set it right, and the signer goes on. If it is right, it ${otherwise}`
    demand(Math.abs(off) <= CLOCK_MS_MAX, `the clock is ${Math.round(off / 1000)} s from ${from}: ${remedy}`)
    begun ??= now - passed
    return new Date(begun + passed)
  }
}

/**
 * Judges a request by the signer's own configuration, journal and clock. Throws Refused with the rule that it breaks, and
 * believes nothing that the configuration does not prove: neither the bytes, nor who accepted or approved the payment.
 */
export function judge(config: SignerConfig, journal: Journal, request: SignRequest, now: Date): Allowed {
  requireHex(request.unsigned, config.networks.get(request.network)?.family.hexMax)
  const { network: name, payments } = request
  const areSome = Array.isArray(request.payments) && payments.length > 0 && payments.length <= PAYMENTS_MAX
  demand(areSome, `1 to ${PAYMENTS_MAX} payments are signed at a time`)
  const judged = payments.map((payment) => judgePayment(config, journal, { ...payment, network: name }, now))
  const { network } = judged[0]!
  const wallet = network.wallets.get(request.wallet)
  demand(wallet !== undefined, `${request.wallet} is no wallet of ${name}`)
  const read = network.family.read(network, request.unsigned, request.wallet)
  demandFee(network, read.fee)
  const ids = new Set(judged.map(({ accepted }) => accepted.id))
  const isWhole = ids.size === payments.length && read.payments === payments.length
  demand(isWhole, `it makes ${read.payments} payments, and ${ids.size} are asked for`)
  const raw = Buffer.from(request.unsigned.slice(2), 'hex')
  const share = read.fee / BigInt(payments.length)
  const lines = judged.map(({ accepted, units }, index): SignLine => {
    requirePays(network, accepted, raw, index)
    return {
      kind: 'SIGN',
      at: now.toISOString(),
      network: name,
      wallet: wallet.address,
      nonce: read.places[0]!,
      ...(network.family.paysMany && { shared: true }),
      transfer_id: accepted.id,
      asset: accepted.asset,
      units: String(units),
      // The first has what does not divide.
      fee: String(index > 0 ? share : read.fee - share * BigInt(payments.length - 1)),
      ...whoseOf(network, accepted),
    }
  })
  for (const line of lines) {
    requireInJournal(journal, request, line.transfer_id)
    requireNoConflict(journal, line)
  }
  const leaving = lines.map((line) => ({ ...leftBy(line, journal.signedBefore(line)), asset: line.asset }))
  requireWithinWindows(name, journal, leaving, now)
  return { lines, wallet: read.signer ?? wallet }
}

/** Throws Early or Refused unless the line agrees with the journal. */
export function requireNoConflict(journal: Journal, line: Parameters<Journal['conflictOf']>[0]): void {
  const conflict = journal.conflictOf(line)
  if (conflict === undefined) return
  // A nonce that is ahead of the journal: those before it may be asked for in a moment.
  const isEarly = line.kind === 'SIGN' && Number(line.nonce) > (journal.nextNonce(line) ?? Infinity)
  throw isEarly ? new Early(conflict) : new Refused(conflict)
}

/** Throws Refused unless this is the journal that the worker knows, and it knows the transfer or everything of its time. */
function requireInJournal(
  journal: Journal,
  { network, journal_heads = [] }: Pick<PaymentToJudge, 'network' | 'journal_heads'>,
  transferId: string,
): void {
  const objection = journal.objectionToHeads(journal_heads) ?? journal.objectionTo(network, transferId)
  demand(objection === undefined, objection!)
}

/**
 * A payment that was foreseen: it counts in windows until it is signed, or for a minute. One that cannot be signed yet is
 * foreseen again and again, and leaves room for others in between.
 */
export interface Foreseen extends Leaving {
  network: string
  until: number
}
const FORESEEN_MS = 60_000
/** It may count again after this time. */
const FORESEEN_AGAIN_MS = 600_000
/** Most payments of a question: nothing else is answered meanwhile. A worker signs for 100 in a round. */
const FORESEEN_MAX = 250

/**
 * Why payments would be refused before there are bytes of them, in order; null for those that would not be. Those before one
 * count in its windows, each with the highest fee, and so do the `foreseen`, to which the payments are added.
 */
export function foresee(
  config: SignerConfig,
  journal: Journal,
  payments: readonly PaymentToJudge[],
  foreseen: Map<string, Foreseen>,
  now: Date,
): (string | null)[] {
  demand(payments.length <= FORESEEN_MAX, `at most ${FORESEEN_MAX} payments are judged at a time`)
  for (const [id, { until }] of foreseen)
    if (until + FORESEEN_AGAIN_MS < now.getTime() || journal.signedFor(id) !== undefined) foreseen.delete(id)
  const counted = new Map([...foreseen].filter(([, { until }]) => until >= now.getTime()))
  return payments.map((payment) => {
    try {
      const { network, accepted, units } = judgePayment(config, journal, payment, now)
      requireInJournal(journal, payment, accepted.id)
      const before = journal.signedFor(accepted.id)
      const isAgain = before !== undefined && network.family.placesStay === true
      if (before !== undefined && !isAgain) throw new Refused(journal.signedAs(accepted.id))
      const own: Foreseen = {
        network: payment.network,
        asset: accepted.asset,
        units: isAgain ? 0n : units,
        fee: network.feeMax,
        ...whoseOf(network, accepted),
        until: foreseen.get(accepted.id)?.until ?? now.getTime() + FORESEEN_MS,
      }
      counted.delete(accepted.id)
      const leaving = [...[...counted.values()].filter((other) => other.network === payment.network), own]
      requireWithinWindows(payment.network, journal, leaving, now)
      counted.set(accepted.id, own)
      foreseen.set(accepted.id, own)
      return null
    } catch (error) {
      // An unreadable payment is refused alone.
      return (error as Error).message
    }
  })
}

const isThere = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined

/** Throws Refused unless the stop file's folder can be searched, and does not have it. */
export function requireNotStopped(stopFile: string): void {
  let why: string | undefined
  try {
    if (isThere(stopFile)) why = 'it is there'
    else if (!isThere(dirname(stopFile))) why = 'its folder is not there'
  } catch (error) {
    why = (error as Error).message
  }
  demand(why === undefined, `everything is stopped by ${stopFile}: ${why!}`)
}

/** Judges a payment by all rules but those of its bytes and its windows. Throws Refused. */
function judgePayment(config: SignerConfig, journal: Journal, payment: PaymentToJudge, now: Date) {
  requireNotStopped(config.stopFile)
  const network = config.networks.get(payment.network)
  demand(network !== undefined, `${payment.network} is not configured`)
  const accepted = acceptedIn(payment.accepted)
  demand(accepted.network === network.network, `it was accepted for ${accepted.network}`)
  demand(accepted.memo === null || network.family.carriesMemo, 'the network carries no memo')
  const decimals = decimalsOn(network.network, accepted.asset)
  demand(decimals !== undefined, `${accepted.asset} is not configured for ${accepted.network}`)
  const units = parseAmount(accepted.amount, decimals)
  demand(units !== undefined, 'the amount cannot be read')
  requireAccepted(config, network, { ...accepted, units, decimals }, payment)
  requireNamed(network, journal, { ...accepted, units }, now)
  return { network, accepted, units }
}

/** The accepted payment, as its text names it (`acceptedText`). */
interface Accepted {
  customer_id: string
  id: string
  asset: string
  amount: string
  network: string
  destination: string
  memo: string | null
}

/** The longest text of what was accepted: nobody has signed it yet, and a longer number takes seconds to read. */
const ACCEPTED_MAX = 10_000

function acceptedIn(text: string): Accepted {
  demand(typeof text === 'string' && text.length <= ACCEPTED_MAX, 'what was accepted cannot be read')
  const members = JSON.parse(text) as (string | null)[]
  demand(Array.isArray(members) && members.length >= 8, 'what was accepted cannot be read')
  const [customer_id, id, , asset, amount, network, destination, memo] = members
  for (const member of [customer_id, id, asset, amount, network, destination])
    demand(typeof member === 'string', 'what was accepted cannot be read')
  return { customer_id, id, asset, amount, network, destination, memo } as Accepted
}

/** Whose limits a payment counts in. The platform's own transfers have destinations of their own. */
const whoseOf = ({ family }: SignerNetwork, { customer_id, destination }: Accepted) =>
  customer_id === PLATFORM_ID ? {} : { customer: customer_id, destination: family.addressOf(destination) }

/** Throws Refused unless people named the destination long enough ago, where a rule of its asset and amount asks for it. */
function requireNamed(
  network: SignerNetwork,
  journal: Journal,
  accepted: Accepted & { units: bigint },
  now: Date,
): void {
  const { destination } = whoseOf(network, accepted)
  if (destination === undefined) return
  const { asset, units } = accepted
  for (const { required, coolingMs } of network.destinations.filter(
    (rule) => rule.asset === asset && units >= rule.from,
  )) {
    const named = journal.named({ network: network.network, asset, destination }, required)
    const name = `'bursar signer destination' names ${destination} for ${asset}`
    demand(named !== undefined, `${required} approvers must have named its destination: ${name}`)
    const from = new Date(Date.parse(named) + coolingMs)
    demand(now >= from, `its destination was named at ${named}, and is paid from ${from.toISOString()} on`)
  }
}

/** Throws Refused unless the bytes pay exactly what was accepted. */
function requirePays(network: SignerNetwork, accepted: Accepted, raw: Buffer, index: number): void {
  const disagreement = unlessUnreadable(() =>
    network.family.disagreementOf(
      {
        customer_id: accepted.customer_id,
        transfer_id: accepted.id,
        network: network.network,
        asset: accepted.asset,
        amount: accepted.amount,
        destination_address: accepted.destination,
        ...(network.family.carriesMemo && { memo: accepted.memo }),
        raw_transaction: raw,
      },
      network.tokenAddresses,
      index,
    ),
  )
  demand(disagreement === undefined, `it does not pay what was accepted: ${disagreement!}`)
}

/** Throws Refused unless a process with an acceptance key accepted it and enough configured approvers signed it. */
function requireAccepted(
  config: SignerConfig,
  network: SignerNetwork,
  accepted: Accepted & { units: bigint; decimals: number },
  { accepted: text, signature, decisions }: SigningEvidence,
): void {
  if (accepted.customer_id === PLATFORM_ID) {
    const to = network.family.addressOf(accepted.destination)
    const isOurs = network.wallets.has(to) || network.treasuryDestinations.has(to)
    demand(isOurs, `${to} is not among treasury_destinations`)
  }
  const bytes = Buffer.from(signature ?? '', 'base64url')
  const isAccepted = config.acceptanceKeys.some((key) => verify(null, Buffer.from(text), key, bytes))
  demand(isAccepted, 'no process with an acceptance key accepted it')
  const required = Math.max(
    0,
    ...config.approvals
      .filter(({ asset, from }) => {
        // An amount that the asset's units do not have would never be reached.
        const least = parseAmount(from, accepted.decimals) ?? 0n
        return asset === accepted.asset && accepted.units >= least
      })
      .map((rule) => rule.required),
  )
  const approving = new Set<string>()
  for (const decision of decisions) {
    if (!isAbout(decision.text, accepted)) continue
    const key = config.approvers.find(
      (approver) => objectionToSignature(decision.text, decision.signed, approver) === undefined,
    )
    if (key === undefined) continue
    const { decision: word } = JSON.parse(decision.text) as { decision: string }
    demand(word === 'APPROVE', 'an approver has rejected it')
    approving.add(thumbprintOf(key))
  }
  demand(
    approving.size >= required,
    `${required} approvals are required from this amount on, and ${approving.size} of the signer's approvers have given theirs`,
  )
}

/** Whether a statement that approvers sign is about this payment, whatever else it says. */
function isAbout(text: string, accepted: Accepted): boolean {
  const { statement, customer_id, subject } = JSON.parse(text) as Record<string, unknown>
  const payment = Object(subject) as Record<string, unknown>
  const members = ['id', 'asset', 'amount', 'network', 'destination', 'memo'] as const
  return (
    statement === 'bursar-approval/v1' &&
    customer_id === accepted.customer_id &&
    payment.type === 'transfer' &&
    members.every((name) => payment[name] === accepted[name])
  )
}

/** Throws Refused unless what has left, with these payments, is within each window. */
export function requireWithinWindows(
  name: string,
  journal: Journal,
  leaving: readonly Leaving[],
  now: Date,
): void {
  const windows = journal.windows.get(name) ?? []
  const isLimited = ({ asset }: Leaving) =>
    windows.some(({ limit: { per, units, ...its } }) => its.asset === asset && !per && units !== undefined)
  const unlimited = leaving.find((one) => !isLimited(one))
  demand(unlimited === undefined, `no window is configured for ${unlimited?.asset}`)
  for (const window of windows) {
    const objection = window.objectionTo(leaving, now)
    demand(objection === undefined, objection!)
  }
}
