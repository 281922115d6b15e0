import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Hex } from 'viem'
import { keccak256 } from 'viem/utils'
import { SIGNER_RECHECK_MS } from '../../src/networks/waiting.ts'
import type { AskedSigner } from '../kit/remote-signer.ts'

/**
 * A signer on a machine without a network. Each question is a file of `requests`, named by the hash of the unsigned bytes,
 * and a person brings the answer to the file of this name in `answers`. Nothing is removed: after a crash, the same is
 * asked.
 */
export function signerByFiles(folder: string): AskedSigner {
  const [requests, answers] = ['requests', 'answers'].map((name) => join(folder, name)) as [string, string]
  return {
    async ask(network, { wallet, unsigned }, evidence) {
      const name = keccak256(unsigned as Hex)
      const answer = await readFile(join(answers, name), 'utf8').catch(noneIfMissing)
      const [signed, head = ''] = answer?.trim().split(/\s+/) ?? []
      if (signed !== undefined) return { signed, head }
      for (const path of [requests, answers]) await mkdir(path, { recursive: true })
      // Who carries the requests away finds each as a whole.
      const path = join(requests, name)
      await writeFile(join(folder, name), JSON.stringify({ network, wallet, unsigned, ...evidence }), {
        mode: 0o600,
      })
      await rename(join(folder, name), path)
      const detail = `${path} waits for its answer`
      return { reason: { code: 'WAITING_SIGNATURE', detail, recheckMs: SIGNER_RECHECK_MS } }
    },
    // Its rules are on its machine.
    check: async (_, evidence) => evidence.map(() => null),
    keyFailure: () => undefined,
  }
}

const noneIfMissing = (error: NodeJS.ErrnoException): undefined => {
  if (error.code !== 'ENOENT') throw error
}
