import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { send, type Call } from './api.ts'
import { Curl, Failure } from './parts.tsx'

/** A button. For a change that cannot be undone, `ask` is the question that a person answers first. */
export function AskedButton({
  ask,
  kind,
  disabled,
  run,
  children,
}: {
  ask: string | undefined
  kind?: 'main' | 'danger' | undefined
  disabled: boolean
  run: () => void
  children: ComponentChildren
}) {
  const asking = useSignal(false)
  const yes = useRef<HTMLButtonElement>(null)
  const first = useRef<HTMLButtonElement>(null)
  const answered = useRef(false)
  // Moves the focus before the next key press, so that Enter after a click answers the question. "No" moves it back.
  useLayoutEffect(() => {
    if (asking.value) yes.current?.focus()
    else if (answered.current) first.current?.focus()
    answered.current = asking.value
  }, [asking.value])
  const confirmed = () => {
    asking.value = false
    run()
  }
  return asking.value ? (
    <div class="ask" role="alertdialog" aria-label={ask}>
      <span>{ask}</span>
      <button ref={yes} type="button" class="danger" onClick={confirmed}>
        Yes
      </button>
      <button type="button" onClick={() => (asking.value = false)}>
        No
      </button>
    </div>
  ) : (
    <button
      ref={first}
      type="button"
      class={kind}
      disabled={disabled}
      onClick={() => (ask === undefined ? run() : (asking.value = true))}
    >
      {children}
    </button>
  )
}

/** A button that makes one call of the API, with the call as curl beside it. A failure is shown at the button. */
export function Action<T>({
  call,
  done,
  ask,
  kind,
  children,
}: {
  call: Call
  done: (answer: T) => void
  ask?: string
  kind?: 'main' | 'danger'
  children: ComponentChildren
}) {
  const busy = useSignal(false)
  const error = useSignal<unknown>(undefined)
  const run = () => {
    busy.value = true
    error.value = undefined
    void send<T>(call)
      .then(done, (reason: unknown) => (error.value = reason))
      .finally(() => (busy.value = false))
  }
  return (
    <div class="action">
      <AskedButton ask={ask} kind={kind} disabled={busy.value} run={run}>
        {children}
      </AskedButton>
      <Curl of={call} />
      <Failure of={error.value} />
    </div>
  )
}
