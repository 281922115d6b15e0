import type { Operation } from '../../http/operation.ts'
import { listActivity } from './activity.ts'
import { getReconciliation, importBankStatement, listBankLines, matchBankLine } from './bank-statements.ts'
import { createClient, renameClient } from './clients.ts'
import { listAllCustomers, makeCustomer } from './customers.ts'
import { createFreeze, endFreeze, listFreezes } from './freezes.ts'
import { createPolicyTrial, listApprovers } from './governance.ts'
import {
  findWirePayee,
  getWire,
  listWires,
  markFailed,
  markSent,
  recordDeposit,
  recordReturn,
  sendBack,
  take,
} from './wires.ts'

/** Operations for operators alone, of what no API client has. */
export const OPERATOR_WORK: readonly Operation[] = [
  listActivity,
  ...[listFreezes, createFreeze, endFreeze],
  ...[listWires, findWirePayee, getWire, take, markSent, markFailed, recordDeposit, recordReturn, sendBack],
  ...[importBankStatement, listBankLines, matchBankLine, getReconciliation],
  ...[listAllCustomers, makeCustomer],
  ...[createClient, renameClient],
  ...[listApprovers, createPolicyTrial],
]
