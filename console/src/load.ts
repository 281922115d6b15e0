import { computed, signal, useSignal, type Signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { type Call, get, send } from './api.ts'
import { returns } from './connection.ts'
import { onEvents } from './live.ts'
import type { Profile, Transfer } from './records.ts'
import { may } from './session.ts'

/** The answer of a call while a page is shown. */
export interface Loaded<T> {
  data: Signal<T | undefined>
  error: Signal<unknown>
  /** Makes the call again. `background`: the page makes it by itself, without a person. */
  again: (background?: boolean) => void
}

/** How many first answers the page waits for. Until it has them, it moves what it shows. */
const reading = signal(0)
export const isReading = computed(() => reading.value > 0)

/** Waits for an answer, or for why there is none. What comes after the signal is dropped. */
async function keep<T>(answer: Promise<T>, to: Pick<Loaded<T>, 'data' | 'error'>, signal: AbortSignal) {
  const counted = to.data.peek() === undefined && to.error.peek() === undefined ? 1 : 0
  reading.value += counted
  try {
    const data = await answer
    if (!signal.aborted) [to.data.value, to.error.value] = [data, undefined]
  } catch (reason) {
    if (!signal.aborted) to.error.value = reason
  }
  reading.value -= counted
}

/** Makes a call when the page opens and whenever the call changes. An answer to an earlier call is dropped. */
export function useCall<T>(call: Call | undefined): Loaded<T> {
  const data = useSignal<T | undefined>(undefined)
  const error = useSignal<unknown>(undefined)
  const running = useRef<AbortController | undefined>(undefined)
  const key = JSON.stringify(call)
  const run = (background = false) => {
    if (call === undefined) return
    running.current?.abort()
    const control = new AbortController()
    running.current = control
    void keep(send<T>(call, { background, signal: control.signal }), { data, error }, control.signal)
  }
  useEffect(() => {
    data.value = undefined
    error.value = undefined
    run()
    return () => running.current?.abort()
  }, [key])
  useEffect(() => {
    let isFirst = true
    return returns.subscribe(() => {
      if (!isFirst) run(true)
      isFirst = false
    })
  }, [key])
  return { data, error, again: run }
}

/** Reads again what events of these types may have changed, this long after the first of a burst. */
export function useFresh(again: ((background: true) => void) | undefined, types = /./, ms = 400): void {
  const newest = useRef(again)
  newest.current = again
  useEffect(() => {
    let timer: number | undefined
    const stop = onEvents((event) => {
      if (event !== undefined && !types.test(event.type)) return
      timer ??= window.setTimeout(() => {
        timer = undefined
        newest.current?.(true)
      }, ms)
    })
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [])
}

/** Does something again and again while the page is shown and its tab is visible; never without a time. */
export function useEvery(ms: number | undefined, work: () => void): void {
  const newest = useRef(work)
  newest.current = work
  useEffect(() => {
    if (ms === undefined) return
    const timer = setInterval(() => document.hidden || newest.current(), ms)
    return () => clearInterval(timer)
  }, [ms])
}

/** Reads a record again with each of its events, and when events may have been missed. */
export const useEventsOf = (id: string, again: Loaded<unknown>['again']): void =>
  useEffect(
    () =>
      onEvents((event) => {
        if (event === undefined || event.object.id === id) again(true)
      }),
    [id],
  )

/** Reads something of each record, all at once. Reads again when the records change, by their key. */
export function useEach<T, R>(
  records: readonly T[] | undefined,
  keyOf: (record: T) => string,
  read: (record: T, signal: AbortSignal) => Promise<R>,
): Omit<Loaded<R[]>, 'again'> {
  const data = useSignal<R[] | undefined>(undefined)
  const error = useSignal<unknown>(undefined)
  const key = records?.map(keyOf).join()
  useEffect(() => {
    if (records === undefined) return
    const control = new AbortController()
    const answers = Promise.all(records.map((record) => read(record, control.signal)))
    void keep(answers, { data, error }, control.signal)
    return () => control.abort()
  }, [key])
  return { data, error }
}

export const useTransfers = (ids: readonly (string | undefined)[] | undefined) =>
  useRecords<Transfer>('/v2/transfer/transfers', 'transfer:read_transfer', ids)

export const useProfiles = (ids: readonly (string | undefined)[]) =>
  useRecords<Profile>('/v2/profiles', 'funding:read_profile', ids)

/** Reads the records with these ids in one request, as a map by id. Without the scope, the map is empty. */
export function useRecords<T extends { id: string }>(
  path: string,
  scope: string,
  ids: readonly (string | undefined)[] = [],
): ReadonlyMap<string | undefined, T> {
  const wanted = [...new Set(ids)].filter((id) => id !== undefined)
  const { data } = useCall<{ items: T[] }>(
    wanted.length > 0 && may(scope) ? get(path, { ids: wanted, limit: wanted.length }) : undefined,
  )
  return new Map(data.value?.items.map((record) => [record.id, record]))
}
