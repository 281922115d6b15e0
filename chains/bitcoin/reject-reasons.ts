/*
 * What nodes of the Bitcoin Core family answer to a transaction that they do not take, in their own words. Any other reason than
 * these concerns a single payment.
 */

const FEE = [
  'min relay fee not met',
  'mempool min fee not met',
  'insufficient fee',
  'absurdly-high-fee',
  'max-fee-exceeded',
  'max feerate exceeded',
  'bad-txns-fee-outofrange',
]
const MEMPOOL = ['mempool full', 'too-long-mempool-chain', 'too-large-cluster']
const SPENT = [
  'missing-inputs',
  'bad-txns-inputs-missingorspent',
  'txn-mempool-conflict',
  'bad-txns-spends-conflicting-tx',
]
const KNOWN = ['txn-already-in-mempool', 'txn-already-known', 'txn-same-nonwitness-data-in-mempool']
/** Each is followed by the script's error in parentheses. */
const SCRIPT = [
  'mandatory-script-verify-flag-failed',
  'non-mandatory-script-verify-flag',
  'mempool-script-verify-flag-failed',
  'block-script-verify-flag-failed',
]

/** Without the code that some nodes write before it, as in `66: mempool full`, and without what stands behind it in parentheses. */
const wordsOf = (rejection: string) => rejection.replace(/^\d+: /, '').replace(/ \(.*$/, '')
const isOf = (reasons: readonly string[]) => (rejection: string) => reasons.includes(wordsOf(rejection))

/** The fee is too low or too high. */
export const isAboutFee = isOf(FEE)
/** The coins are spent or unknown. */
export const isAboutCoins = isOf(SPENT)
/** The node has the transaction. */
export const isKnown = isOf(KNOWN)
/** An output is too small for what it costs to spend it. */
export const isDust = isOf(['dust'])
/** The signatures do not suffice. */
export const isAboutScripts = isOf(SCRIPT)
/** A transaction with fewer payments would meet it, too. */
export const concernsAll = isOf([...FEE, ...MEMPOOL, ...SPENT, ...KNOWN])
