import type { Operation } from '../../http/operation.ts'
import { cancelTransfer } from './cancel-transfer.ts'
import { createCryptoWithdrawal } from './create-crypto-withdrawal.ts'
import { createCryptoWithdrawals } from './create-crypto-withdrawals.ts'
import { createFiatWithdrawal } from './create-fiat-withdrawal.ts'
import { createInternalTransfer } from './create-internal-transfer.ts'
import { createPaxosTransfer } from './create-paxos-transfer.ts'
import { getTransfer } from './get-transfer.ts'
import { getTransferHistory } from './get-transfer-history.ts'
import { listTransfers } from './list-transfers.ts'
import { listVolumes } from './list-volumes.ts'
import { quoteCryptoWithdrawalFee } from './quote-crypto-withdrawal-fee.ts'
import { verifyTransfer } from './verify-transfer.ts'

export const TRANSFER_OPERATIONS: readonly Operation[] = [
  createCryptoWithdrawal,
  getTransfer,
  getTransferHistory,
  verifyTransfer,
  listVolumes,
  listTransfers,
  cancelTransfer,
  createInternalTransfer,
  createPaxosTransfer,
  createFiatWithdrawal,
  quoteCryptoWithdrawalFee,
  createCryptoWithdrawals,
]
