import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { keccak256 } from 'viem/utils'
import { parse } from '../chains/evm/transaction.ts'
import { BackEndFailure } from './back-end.ts'
import { Refused } from './refused.ts'
import type { SignRequest } from './rules.ts'
import type { Signer } from './service.ts'

/** A request that was carried here as a file, with what it says that it pays: signing compares that with its bytes. */
export interface CarriedRequest {
  request: SignRequest
  shown: Record<
    'file' | 'transfer_id' | 'amount' | 'asset' | 'network' | 'destination' | 'wallet' | 'nonce',
    string
  >
}

/** Reads requests, in the order of their nonces: the journal has no gaps. Throws an Error with the name of a file that is none. */
export async function readRequests(files: readonly string[]): Promise<CarriedRequest[]> {
  const requests: CarriedRequest[] = []
  for (const file of files)
    try {
      const request = JSON.parse(await readFile(file, 'utf8')) as SignRequest
      const [, transfer_id, , asset, amount, , destination] = JSON.parse(
        request.payments[0]!.accepted,
      ) as string[]
      const { network, wallet, unsigned } = request
      const nonce = String(parse(unsigned).nonce)
      const shown = Object.entries({ transfer_id, amount, asset, network, destination, wallet, nonce })
      // A terminal would obey other characters.
      const isPlain = shown.every(([, text]) => typeof text === 'string' && /^[ -~]+$/.test(text))
      if (!isPlain) throw new Error('what was accepted cannot be shown')
      requests.push({ request, shown: { ...Object.fromEntries(shown), file } as CarriedRequest['shown'] })
    } catch (error) {
      throw new Error(`${file} is no request: ${(error as Error).message}`, { cause: error })
    }
  return requests.sort((a, b) => Number(a.shown.nonce) - Number(b.shown.nonce))
}

/** Signs a request, and writes the answer to the file that the worker looks for. Returns a refusal's reason. */
export async function answerRequest(
  signer: Signer,
  { request }: CarriedRequest,
  answers: string,
): Promise<string | undefined> {
  try {
    const { signed, head } = await signer.sign(request)
    await writeFile(join(answers, keccak256(request.unsigned)), `${signed}\n${head}\n`)
    return undefined
  } catch (error) {
    if (error instanceof Refused || error instanceof BackEndFailure) return error.message
    throw error
  }
}
