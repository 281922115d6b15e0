import { render } from 'preact'
import { App } from './app.tsx'
import { readSession } from './session.ts'

await readSession().catch(() => undefined)
render(<App />, document.getElementById('console')!)
