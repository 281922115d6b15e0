import { useSignal } from '@preact/signals'
import { address, open } from './address.ts'
import { customer } from './session.ts'

/** Saved views: names for the filters of a list, which are kept on this device for each customer. */

interface View {
  name: string
  /** The filters, as the address has them. */
  query: string
}

const NAME_LENGTH_MAX = 60

/** The filters in the address, without the place in the list. */
function presentQuery(): string {
  const query = new URLSearchParams(address.value.query)
  query.delete('cursor')
  query.sort()
  return query.toString()
}

/** Chooses, saves and deletes a view of the list that the address names. */
export function Views() {
  const { path } = address.value
  const key = `views of ${path} ${customer.value}`
  const views = useSignal(JSON.parse(localStorage.getItem(key) ?? '[]') as View[])
  const query = presentQuery()
  const chosen = views.value.find((view) => view.query === query)
  const keep = (changed: View[]) => {
    views.value = changed
    localStorage.setItem(key, JSON.stringify(changed))
  }
  if (views.value.length === 0 && query === '') return null
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault()
        const form = event.currentTarget
        const name = (new FormData(form).get('name') as string).trim()
        if (name === '') return
        keep([...views.value.filter((view) => view.name !== name), { name, query }])
        form.reset()
      }}
    >
      <label>
        Saved view
        <select
          value={chosen?.name ?? ''}
          onChange={({ currentTarget: { value } }) => {
            const view = views.value.find(({ name }) => name === value)
            open(view === undefined ? path : `${path}?${view.query}`)
          }}
        >
          <option value="">None</option>
          {views.value.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      {chosen === undefined && query !== '' && (
        <>
          <label>
            Name
            <input name="name" maxLength={NAME_LENGTH_MAX} required size={16} />
          </label>
          <button>Save this view</button>
        </>
      )}
      {chosen !== undefined && (
        <button type="button" onClick={() => keep(views.value.filter((view) => view !== chosen))}>
          Delete this view
        </button>
      )}
      {query !== '' && (
        <button type="button" onClick={() => open(path)}>
          Clear filters
        </button>
      )}
    </form>
  )
}
