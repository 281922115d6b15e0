// Runs in Postman and in runners of its collections, before each request: fetches a token where none is valid.
const of = (name) => pm.variables.get(name)
if (!(Date.now() < Number(of('access_token_until'))))
  pm.sendRequest(
    {
      url: pm.variables.replaceIn('TOKEN_URL'),
      method: 'POST',
      header: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: {
        mode: 'urlencoded',
        urlencoded: [
          { key: 'grant_type', value: 'client_credentials' },
          { key: 'client_id', value: of('client_id') },
          { key: 'client_secret', value: of('client_secret') },
        ],
      },
    },
    (error, answer) => {
      if (error || answer.code !== 200) return console.error(error || answer.text())
      const { access_token, expires_in } = answer.json()
      pm.collectionVariables.set('access_token', access_token)
      pm.collectionVariables.set('access_token_until', String(Date.now() + expires_in * 900))
    },
  )
