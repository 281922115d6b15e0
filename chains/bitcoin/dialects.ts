import type { RpcCall } from '../kit/json-rpc.ts'

export type BitcoinNetwork = 'BITCOIN' | 'LITECOIN' | 'BITCOIN_CASH'

/** How soon a withdrawal should be mined, in blocks: the target that its fee is estimated for. */
const FEE_TARGET_BLOCKS = 6

/** The differences between the family's nodes. */
export interface Dialect {
  newAddress: RpcCall
  newChangeAddress: RpcCall
  changeScriptBytes: number
  /**
   * The call that estimates a fee per 1,000 virtual bytes. The node answers an amount, or an object with the amount as
   * `feerate`. Without an estimate it answers -1, or an object without `feerate`.
   */
  estimate: RpcCall
  /** Whether nodes take a replacement of an unmined transaction that pays a higher fee (BIP 125). */
  isReplaceable: boolean
  /** Whether coins may have tokens on them, which the node never spends by itself (CashTokens). */
  hasTokens: boolean
  /** The parameter that lifts the node's own limit on fees. Bursar's ceiling applies instead. */
  anyFee: unknown
  /** The size of a withdrawal with two inputs and change. */
  typicalVbytes: bigint
}

const CORE: Dialect = {
  newAddress: ['getnewaddress', '', 'bech32'],
  newChangeAddress: ['getrawchangeaddress', 'bech32'],
  changeScriptBytes: 22,
  estimate: ['estimatesmartfee', FEE_TARGET_BLOCKS],
  isReplaceable: true,
  hasTokens: false,
  anyFee: 0,
  typicalVbytes: 209n,
}

export const DIALECTS: Record<BitcoinNetwork, Dialect> = {
  BITCOIN: CORE,
  LITECOIN: CORE,
  // Bitcoin Cash Node has no segregated witness and no replacement, and its estimate takes no target.
  BITCOIN_CASH: {
    newAddress: ['getnewaddress', ''],
    newChangeAddress: ['getrawchangeaddress'],
    changeScriptBytes: 25,
    estimate: ['estimatefee'],
    isReplaceable: false,
    hasTokens: true,
    anyFee: true,
    typicalVbytes: 374n,
  },
}
