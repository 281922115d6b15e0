const dark = matchMedia('(prefers-color-scheme: dark)')
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', follow)
follow()

// Swagger UI filters by tags alone. This compares the words of the filter with path, summary and tag of each operation.
const filterOperations = (tags, text) => {
  const words = text.toLowerCase().split(/\s+/)
  const fits = (tag) => (operation) => {
    const summary = operation.getIn(['operation', 'summary'], '')
    const all = [tag, operation.get('method'), operation.get('path'), summary].join(' ').toLowerCase()
    return words.every((word) => all.includes(word))
  }
  return tags
    .map((group, tag) => group.update('operations', (operations) => operations.filter(fits(tag))))
    .filter((group) => group.get('operations').size > 0)
}
const element = document.getElementById('swagger-ui')
const isSandbox = element.hasAttribute('data-sandbox')
const ui = SwaggerUIBundle({
  domNode: element,
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  filter: true,
  // A browser keeps the authorization of a sandbox, never that of a live service.
  persistAuthorization: isSandbox,
  validatorUrl: null,
  url: new URL('json', document.baseURI).href,
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [() => ({ fn: { opsFilter: filterOperations } })],
  onComplete: () =>
    document
      .querySelector('.operation-filter-input')
      .setAttribute('placeholder', 'Filter by path, name or tag'),
})
const demo = document.getElementById('demo')
const authorize = async () => {
  demo.disabled = true
  const answer = await fetch('demo-token', { method: 'POST' }).catch(() => undefined)
  const body = await answer?.json().catch(() => undefined)
  if (answer?.ok) {
    const scheme = ui.specSelectors.securityDefinitions().get('oauth2').toJS()
    const scopes = Object.keys(scheme.flows.clientCredentials.scopes)
    ui.authActions.authorizeOauth2WithPersistOption({
      auth: { name: 'oauth2', schema: { ...scheme, flow: 'clientCredentials' }, scopes },
      token: body,
    })
    demo.textContent = 'Authorized as the demo customer'
  } else demo.textContent = body?.detail ?? 'The service does not answer'
}
demo?.addEventListener('click', () => void authorize())
if (isSandbox) ui.initOAuth({ appName: 'Bursar', scopes: element.dataset.scopes })
