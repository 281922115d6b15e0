import { address, setQuery } from '../address.ts'
import { inWords } from '../format.ts'
import { useCall } from '../load.ts'
import { Curl, Failure, Id, Link, Loading, Pager, Status, Time, Title } from '../parts.tsx'
import type { Change, Page } from '../records.ts'

/** Who changed what, and what was refused. */

const PAGE_SIZE = 50
const ACTORS = ['API_CLIENT', 'OPERATOR', 'WORKER', 'COMMAND_LINE']

export function AuditLogPage() {
  const { query } = address.value
  const one = (name: string) => query.get(name) ?? ''
  const call = {
    method: 'GET',
    path: '/v2/audit-log',
    query: {
      actor_type: one('actor'),
      outcomes: one('outcome'),
      subject_ids: one('subject'),
      limit: PAGE_SIZE,
      page_cursor: one('cursor'),
    },
  } as const
  const { data, error } = useCall<Page<Change>>(call)
  const choose = (name: string) => (value: string) => setQuery({ [name]: value.trim(), cursor: '' })
  return (
    <>
      <Title>Audit log</Title>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Who
          <select value={one('actor')} onChange={({ currentTarget }) => choose('actor')(currentTarget.value)}>
            <option value="">Anybody</option>
            {ACTORS.map((actor) => (
              <option key={actor} value={actor}>
                {inWords(actor)}
              </option>
            ))}
          </select>
        </label>
        <label>
          Outcome
          <select
            value={one('outcome')}
            onChange={({ currentTarget }) => choose('outcome')(currentTarget.value)}
          >
            <option value="">Any</option>
            <option value="DONE">Done</option>
            <option value="REFUSED">Refused</option>
          </select>
        </label>
        <label>
          Record
          <input
            value={one('subject')}
            size={36}
            maxLength={36}
            spellcheck={false}
            onChange={({ currentTarget }) => choose('subject')(currentTarget.value)}
          />
        </label>
      </form>
      <Failure of={error.value} />
      {data.value === undefined && error.value === undefined && <Loading />}
      <div class="scroll" tabIndex={0} role="region" aria-label="Audit log">
        <table>
          <thead>
            <tr>
              <th>Time</th>
              <th>Action</th>
              <th>Outcome</th>
              <th>Who</th>
              <th>Record</th>
              <th>Request</th>
              <th>From</th>
            </tr>
          </thead>
          <tbody>
            {data.value?.items.map(({ id, at, action, outcome, actor, subject, request_id, ip, changes }) => (
              <tr key={id}>
                <td>
                  <Time at={at} />
                </td>
                <td>
                  <code>{action}</code>
                  {changes !== undefined && (
                    <details>
                      <summary>changes</summary>
                      <pre tabIndex={0}>{JSON.stringify(changes, null, 2)}</pre>
                    </details>
                  )}
                </td>
                <td>
                  <Status of={outcome} />
                </td>
                <td>
                  {inWords(actor.type)}{' '}
                  {actor.id.length === 36 ? <Id of={actor.id} /> : <code>{actor.id}</code>}
                </td>
                <td>
                  {subject.type === 'transfer' ? (
                    <Link to={`transfers/${subject.id}`}>transfer</Link>
                  ) : (
                    inWords(subject.type)
                  )}{' '}
                  <Id of={subject.id} />
                </td>
                <td>{request_id !== undefined && <Id of={request_id} />}</td>
                <td>{ip}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Pager next={data.value?.next_page_cursor} />
      <Curl of={call} />
    </>
  )
}
