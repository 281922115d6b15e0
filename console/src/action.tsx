import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { send, type Call } from './api.ts'
import { inWords } from './format.ts'
import { Curl, Failure } from './parts.tsx'
import { may } from './session.ts'

/** Work that a person starts: whether it runs, and why it failed. */
export function useWork() {
  const isRunning = useSignal(false)
  const error = useSignal<unknown>(undefined)
  const run = (work: () => Promise<unknown>): void => {
    isRunning.value = true
    error.value = undefined
    void work()
      .catch((reason: unknown) => (error.value = reason))
      .finally(() => (isRunning.value = false))
  }
  return { isRunning, error, run }
}

/** A button. For a change that cannot be undone, `ask` is the question that a person answers first, or makes and shows it. */
function AskedButton({
  ask,
  kind,
  disabled,
  isReady,
  run,
  children,
}: {
  ask: string | ((show: (question: string) => void) => void) | undefined
  kind?: 'main' | 'danger' | undefined
  disabled: boolean
  /** Whether the action may go on, to its question or its call. */
  isReady: () => boolean
  run: () => void
  children: ComponentChildren
}) {
  const asking = useSignal('')
  const yes = useRef<HTMLButtonElement>(null)
  const first = useRef<HTMLButtonElement>(null)
  const answered = useRef(false)
  // Moves the focus before the next key press, so that Enter after a click answers the question. "No" moves it back.
  useLayoutEffect(() => {
    if (asking.value !== '') yes.current?.focus()
    else if (answered.current) first.current?.focus()
    answered.current = asking.value !== ''
  }, [asking.value])
  const confirmed = () => {
    asking.value = ''
    run()
  }
  return asking.value !== '' ? (
    <div class="ask" role="alertdialog" aria-label={asking.value}>
      <span>{asking.value}</span>
      <button ref={yes} type="button" class="danger" onClick={confirmed}>
        Yes
      </button>
      <button type="button" onClick={() => (asking.value = '')}>
        No
      </button>
    </div>
  ) : (
    <button
      ref={first}
      type="button"
      class={kind}
      disabled={disabled}
      onClick={() => {
        if (!isReady()) return
        if (ask === undefined) run()
        else if (typeof ask === 'string') asking.value = ask
        else ask((question) => (asking.value = question))
      }}
    >
      {children}
    </button>
  )
}

export interface Field {
  /** Its name among the values. */
  name: string
  label: string
  /** The values to choose from; a text otherwise. */
  of?: readonly string[]
  size?: number
  optional?: boolean
  placeholder?: string
  /** What it is at first. */
  value?: string
}
export type Values = Readonly<Record<string, string>>

/**
 * A button that makes one call of the API, with the fields that the call needs and the call as curl beside it. A failure is
 * shown at the button.
 */
export function Action<T>({
  call,
  work,
  fields = [],
  done,
  ask,
  kind,
  scope,
  summary,
  children,
}: {
  call?: Call | ((values: Values) => Call)
  /** What is done in place of the call, where one is not enough. */
  work?: (values: Values) => Promise<T>
  fields?: readonly Field[]
  done: (answer: T) => void
  /** The question of a change that cannot be undone; as a function, of the values. */
  ask?: string | ((values: Values) => string | Promise<string>)
  kind?: 'main' | 'danger'
  /** The scope of the call. An operator without it has no button. */
  scope?: string
  /** The word that opens the action; it is open otherwise. */
  summary?: string
  children: ComponentChildren
}) {
  const { isRunning, error, run } = useWork()
  const given = useSignal<Values>({})
  const form = useRef<HTMLFormElement>(null)
  if (scope !== undefined && !may(scope)) return null
  const values = Object.fromEntries(
    fields.map(({ name, value = '' }) => [name, (given.value[name] ?? value).trim()]),
  )
  const asked = typeof call === 'function' ? call(values) : call
  const make = async () => {
    const answer = await (work?.(values) ?? send<T>(asked!))
    given.value = {}
    done(answer)
  }
  const button = (
    <AskedButton
      // A question is about the values that it was asked for.
      key={JSON.stringify(values)}
      ask={typeof ask === 'function' ? (show) => run(async () => show(await ask(values))) : ask}
      kind={kind}
      disabled={isRunning.value}
      isReady={() => form.current?.reportValidity() ?? true}
      run={() => run(make)}
    >
      {children}
    </AskedButton>
  )
  const action = (
    <div class="action">
      {fields.length === 0 ? (
        button
      ) : (
        <form
          ref={form}
          class="filters"
          onSubmit={(event) => {
            event.preventDefault()
            form.current!.querySelector<HTMLButtonElement>('button:last-of-type')!.click()
          }}
        >
          {fields.map((field) => (
            <Input
              key={field.name}
              of={field}
              value={given.value[field.name] ?? field.value ?? ''}
              set={(value) => (given.value = { ...given.value, [field.name]: value })}
            />
          ))}
          {button}
        </form>
      )}
      {asked !== undefined && <Curl of={asked} />}
      <Failure of={error.value} />
    </div>
  )
  return summary === undefined ? (
    action
  ) : (
    <details>
      <summary>{summary}</summary>
      {action}
    </details>
  )
}

const Input = ({ of: field, value, set }: { of: Field; value: string; set: (value: string) => void }) => (
  <label>
    {field.label}
    {field.of === undefined ? (
      <input
        value={value}
        size={field.size ?? 20}
        maxLength={2_000}
        required={field.optional !== true}
        placeholder={field.placeholder}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
    ) : (
      <select value={value} onChange={({ currentTarget }) => set(currentTarget.value)}>
        {field.of.map((choice) => (
          <option key={choice} value={choice}>
            {inWords(choice)}
          </option>
        ))}
      </select>
    )}
  </label>
)
