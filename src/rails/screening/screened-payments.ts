import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Queryable } from '../../db/database.ts'
import { presentOf } from '../../db/rows.ts'
import type { PayoutNetwork } from '../../networks/network.ts'
import type { PaymentToScreen } from './screening.ts'
import { selectWaitingDeposit, type IncomingTransfer } from '../deposits/incoming-transfers.ts'
import { selectOwners, type AddressOwner } from '../deposits/owners.ts'
import { PAYOUT_NETWORK } from '../../contract/payout-sql.ts'

/**
 * What the screening endpoint is asked about payments. The same functions describe a payment for the question and for the
 * check before it is signed or credited, so that an ALLOW counts for exactly what was asked.
 */

interface WithdrawalRow {
  transfer_id: string
  type: string
  profile_id: string
  identity_id: string | null
  account_id: string | null
  network: PayoutNetwork
  asset: string
  amount: string
  destination_address: string | null
  memo: string | null
  fiat_account_id: string | null
  fiat_account_owner: object | null
  fiat_network_instructions: { wire: { account_number?: string } } | null
}

/** The customer's PENDING withdrawals among these, by transfer id, with their rows. */
export async function selectScreenedWithdrawals(
  db: Queryable,
  customerId: string,
  transferIds: readonly string[],
): Promise<Map<string, { payment: PaymentToScreen; row: WithdrawalRow }>> {
  const { rows } = await db.query<WithdrawalRow>(
    `
    select t.id as transfer_id, t.type, t.profile_id, t.identity_id, t.account_id,
           ${PAYOUT_NETWORK} as network, t.asset, t.amount, t.destination_address, t.memo,
           t.fiat_account_id, f.fiat_account_owner, f.fiat_network_instructions
    from transfers t
    left join fiat_accounts f on f.customer_id = t.customer_id and f.id = t.fiat_account_id
    where t.customer_id = $1 and t.id = any ($2::uuid[]) and t.status = 'PENDING'`,
    [customerId, transferIds],
  )
  return new Map(rows.map((row) => [row.transfer_id, { payment: paymentOfWithdrawal(customerId, row), row }]))
}

function paymentOfWithdrawal(customer_id: string, row: WithdrawalRow): PaymentToScreen {
  const { transfer_id, asset, amount, fiat_account_id, fiat_account_owner, fiat_network_instructions } = row
  const fiat_account =
    fiat_account_id === null ? null : { id: fiat_account_id, fiat_account_owner, fiat_network_instructions }
  const { type, profile_id, identity_id, account_id, network, destination_address, memo } = row
  return {
    kind: 'WITHDRAWAL',
    customer_id,
    subject: transfer_id,
    details: presentOf({
      transfer_id,
      type,
      profile_id,
      identity_id,
      account_id,
      network,
      asset,
      amount: plainAmount(asset, amount),
      destination_address,
      memo,
      fiat_account,
    }),
  }
}

export function paymentOfDeposit(
  incoming: Pick<
    IncomingTransfer,
    'customer_id' | 'network' | 'crypto_tx_hash' | 'crypto_tx_index' | 'asset' | 'amount' | 'address'
  >,
  owner: AddressOwner,
): PaymentToScreen {
  const { customer_id, network, crypto_tx_hash, crypto_tx_index, asset, amount, address } = incoming
  const { profile_id, identity_id, account_id } = owner
  return {
    kind: 'DEPOSIT',
    customer_id,
    subject: [network, crypto_tx_hash, crypto_tx_index].join('/'),
    details: presentOf({
      type: 'CRYPTO_DEPOSIT',
      profile_id,
      identity_id,
      account_id,
      network,
      asset,
      amount: plainAmount(asset, amount),
      destination_address: address,
      crypto_tx_hash,
      crypto_tx_index,
    }),
  }
}

/** The waiting deposit that a question is about; undefined where it does not wait, or nobody owns its address. */
export async function selectScreenedDeposit(
  db: Queryable,
  customerId: string,
  subject: string,
): Promise<{ payment: PaymentToScreen; incoming: IncomingTransfer } | undefined> {
  const [, network = '', hash = '', index = ''] = /^([^/]*)\/([^/]*)\/(.*)$/.exec(subject) ?? []
  const incoming = await selectWaitingDeposit(db, [customerId, network, hash, index])
  if (incoming === undefined) return undefined
  const owners = await selectOwners(db, network as CryptoNetwork, [incoming])
  const owner = owners.get(incoming.address)?.find((owner) => owner.customer_id === customerId)
  return owner && { payment: paymentOfDeposit(incoming, owner), incoming }
}

const plainAmount = (asset: string, amount: string) =>
  formatAmount(parseStoredAmount(amount, decimalsOf(asset)), decimalsOf(asset))
