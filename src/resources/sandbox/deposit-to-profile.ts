import { minorUnits } from '../../contract/assets/precision.ts'
import { randomBytes } from 'node:crypto'
import { Type } from 'typebox'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'
import { findAsset, type Asset, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Origin } from '../../contract/actor.ts'
import { forAll, transaction, type Database } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { recordChanges } from '../../audit/audit.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Amount, AssetSymbol, Closed, Network, RefId, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import { notionalUsd, type UsdPrices } from '../../contract/assets/usd-value.ts'
import { usdPrices } from '../../money/records/usd-prices.ts'
import { deposit, type Deposit } from '../../money/movements/deposit.ts'
import { selectDepositAddress } from '../../money/records/deposit-address.ts'
import { requireProfile } from '../../money/records/profile.ts'
import { canonicalAddress } from '../../contract/addresses/addresses.ts'
import type { Networks } from '../../networks/network.ts'
import { newDeposit } from '../../networks/simulated/deposits.ts'
import { formatHash } from '../../networks/simulated/hash.ts'
import { MAGIC_AMOUNTS, magicDeposit, type MagicDeposit } from '../../networks/simulated/magic-amounts.ts'
import { audited } from '../../audit/audited.ts'
import { showDeposits } from '../../rails/deposits/see-deposits.ts'
import { announceSimulatedWire } from './announce-simulated-wire.ts'
import { requireDepositable, requireNoRefId } from './deposit-limit.ts'
import type { DepositAddressRow } from '../../networks/deposit-addresses.ts'

const DepositBody = Closed({
  asset: AssetSymbol,
  amount: Amount('Amount to deposit.'),
  ref_id: Type.Optional(RefId),
  crypto_network: Type.Optional(Network),
  crypto_address: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'The deposit address of the profile that receives the deposit. Needs crypto_network.',
    }),
  ),
})

export const depositToProfile = operation({
  method: 'POST',
  url: '/v2/sandbox/profiles/:id/deposit',
  scope: 'transfer:write_sandbox_fiat_deposit',
  // Clients written for other platforms have this scope. The money is invented, so a read scope suffices.
  alternativeScope: 'funding:read_profile',
  tag: 'Sandbox',
  summary: 'Deposit To Sandbox Profile',
  description:
    'Simulates a deposit, for testing: of fiat by wire, of any other asset over crypto_network (default: the first simulated network that supports it). The balance is credited before the answer, except for magic amounts. The scope `funding:read_profile` is sufficient too. Exists in sandbox mode only.',
  sandboxOnly: true,
  params: Type.Object({ id: Uuid('Profile to credit.') }),
  body: DepositBody,
  example: {
    params: { id: EXAMPLE.profile_id },
    bodies: {
      'USDP over Ethereum': { asset: 'USDP', amount: '25.5', crypto_network: 'ETHEREUM' },
      'USD by wire': { asset: 'USD', amount: '100.00' },
      Bitcoin: { asset: 'BTC', amount: '0.5' },
    },
  },
  reply: Type.Object({ activity_id: Uuid('Id of the transfer.') }),
  problems: ['exceed-precision', 'unsupported-network', 'not-found', 'already-exists', 'unavailable'],
  async run({ params, body, customerId, origin, db, ledger, networks }) {
    const asset = findAsset(body.asset)
    if (asset === undefined) throw problem.badRequest(`asset ${body.asset} is unknown`, 'asset')
    const network = networkOf(asset, body.crypto_network, networks)
    if (body.crypto_address !== undefined) requireAddressOf(body.crypto_network, body.crypto_address)
    const listing = network && asset.networks[network]
    const decimals = Math.min(asset.decimals, listing?.decimals ?? asset.decimals)
    minorUnits('amount', body.amount, { asset: asset.symbol, decimals })
    const minor = parseAmount(body.amount, asset.decimals)!
    requireDepositable(minor, asset.decimals)
    await requireProfile(db, customerId, params.id)

    const arrived = { profile_id: params.id, asset: asset.symbol, minor }
    const refId = body.ref_id === undefined ? {} : { ref_id: body.ref_id }
    const outcome = magicDeposit(formatAmount(minor, asset.decimals))
    if (network === undefined) {
      if (outcome !== undefined) {
        requireNoRefId(body.ref_id)
        return {
          activity_id: await announceSimulatedWire(db, customerId, arrived, outcome, origin),
        }
      }
      const wire: Deposit = {
        ...arrived,
        type: 'WIRE_DEPOSIT',
        arrivedAt: 'bank',
        place: undefined,
        record: refId,
      }
      const { transfer } = await ledger.submit(customerId, deposit(customerId, wire, origin))
      return { activity_id: transfer.id }
    }
    const place =
      body.crypto_address === undefined
        ? undefined
        : await requireOwnAddress(db, customerId, params.id, network, body.crypto_address)
    const prices = await usdPrices(db, true)
    if (place !== undefined && outcome !== undefined) {
      requireNoRefId(body.ref_id)
      const paid = { asset: asset.symbol, amount: MAGIC_AMOUNTS[outcome], address: place.address }
      return { activity_id: await showDeposit(db, origin, network, paid, { outcome, prices }) }
    }
    const { transfer } = await ledger.submit(
      customerId,
      deposit(
        customerId,
        {
          ...arrived,
          type: 'CRYPTO_DEPOSIT',
          arrivedAt: `simulated:${network}`,
          place,
          convertToUsd: place?.conversion_target_asset === 'USD',
          record: {
            ...refId,
            crypto_network: network,
            crypto_tx_hash: formatHash(network, randomBytes(32)),
            crypto_tx_index: '0',
            destination_address: body.crypto_address,
            notional_value: notionalUsd(minor, asset, prices),
          },
        },
        origin,
      ),
    )
    return { activity_id: transfer.id }
  },
})

/** When to try again after the limit of PENDING deposits. Most end after the simulated confirmation, 2 s by default. */
const PENDING_RETRY_SECONDS = 60

/**
 * Lets a deposit of a magic amount arrive on the simulated chain, where it is seen before it is confirmed. The worker
 * credits it, or fails it after a reorganisation. Returns the id of its PENDING transfer, which is recorded first: if the
 * process dies before the broadcast, the deposit fails, because the chain does not have it.
 */
async function showDeposit(
  db: Database,
  origin: Origin,
  network: CryptoNetwork,
  paid: { asset: string; amount: string; address: string },
  { outcome, prices }: { outcome: MagicDeposit; prices: UsdPrices },
): Promise<string> {
  const { sight, broadcast } = newDeposit(network, paid, { takenBack: outcome === 'FAILED_LATER' })
  const id = await transaction(db, async (tx) => {
    const now = await readClock(tx)
    const [shown] = await showDeposits(tx, network, [sight(now)], { prices })
    if (shown === undefined)
      throw problem.tooManyRequests(
        'too many deposits of the address or the network are PENDING, or failed within a day',
        PENDING_RETRY_SECONDS,
      )
    recordChanges(tx, shown.customer_id, now, [audited(origin, 'transfer.create', shown.transfer_id)])
    return shown.transfer_id
  })
  await broadcast(forAll(db))
  return id
}

/** Chooses the network of a deposit; none for fiat. Simulated deposits never use a real network. */
function networkOf(
  asset: Asset,
  asked: CryptoNetwork | undefined,
  networks: Networks,
): CryptoNetwork | undefined {
  const supported = Object.keys(asset.networks) as CryptoNetwork[]
  const simulated = supported.filter((network) => networks.get(network)?.isSimulated)
  if (asked === undefined && supported.length === 0) return undefined
  if (asked === undefined ? simulated.length === 0 : supported.includes(asked) && !simulated.includes(asked))
    throw problem.badRequest(
      `crypto_network ${asked ?? supported.join(', ')} is a real network here: send ${asset.symbol} over it to a deposit address (POST /v2/transfer/deposit-addresses)` +
        (simulated.length > 0 ? `; simulated: ${simulated.join(', ')}` : ''),
      'crypto_network',
    )
  if (asked === undefined) return simulated[0]
  if (!supported.includes(asked)) {
    throw problem.unsupportedNetwork('crypto_network', {
      asset: asset.symbol,
      crypto_network: asked,
      supported,
    })
  }
  return asked
}

function requireAddressOf(network: CryptoNetwork | undefined, address: string): void {
  if (network === undefined) throw problem.badRequest('crypto_address needs crypto_network', 'crypto_network')
  if (canonicalAddress(network, address, { testNetworks: true }) === undefined)
    throw problem.badRequest(`crypto_address is not an address of ${network}`, 'crypto_address')
}

async function requireOwnAddress(
  db: Database,
  customerId: string,
  profileId: string,
  network: CryptoNetwork,
  address: string,
): Promise<DepositAddressRow> {
  const place = await selectDepositAddress(db, customerId, network, address)
  if (place?.profile_id !== profileId) throw problem.notFound('crypto_address', address)
  return place
}
