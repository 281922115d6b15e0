/** Called with the first of several failures to read a value. */
export type OnFailure = (error: unknown) => void

/** A value that a process reads again and again. While it cannot be read, the last value stays in use. */
export class Refreshed<T> {
  value: T
  /** When the reading that gave the value began, by `performance.now()`. */
  readAt = -Infinity
  /** When the last attempt ended; -Infinity while one is under way. */
  triedAt = performance.now()
  isFailing = false
  readonly #readValue: (last: T) => Promise<T>
  readonly #onFailure: OnFailure
  #reading: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(first: T, read: (last: T) => Promise<T>, onFailure: OnFailure) {
    this.value = first
    this.#readValue = read
    this.#onFailure = onFailure
  }

  /** Reads the value, or waits for the reading under way. Throws where it cannot be read. */
  read(): Promise<void> {
    return (this.#reading ??= this.#readOnce().finally(() => {
      this.triedAt = performance.now()
      this.#reading = undefined
    }))
  }

  async #readOnce(): Promise<void> {
    const begunAt = performance.now()
    this.triedAt = -Infinity
    this.value = await this.#readValue(this.value)
    this.readAt = begunAt
    this.isFailing = false
  }

  /** Reads the value again. Reports a failure and does not throw. */
  again(): Promise<void> {
    return this.read().catch((error: unknown) => {
      if (!this.isFailing) this.#onFailure(error)
      this.isFailing = true
    })
  }

  /** Reads the value again at this interval, until `stop`. */
  follow(everyMs: number): void {
    this.#timer = setInterval(() => void this.again(), everyMs).unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#reading?.catch(() => undefined)
  }
}
