interface References {
  paths: Record<string, Record<string, { responses: Record<string, object> }>>
  components: { responses: Record<string, object> }
}

/** Replaces the references of the API document's operations by the responses to which they refer. Changes the document. */
export function writtenOut<Document>(document: Document): Document {
  const { paths, components } = document as References
  for (const { responses } of Object.values(paths).flatMap((path) => Object.values(path)))
    for (const [status, response] of Object.entries(responses))
      if ('$ref' in response)
        responses[status] = components.responses[String(response.$ref).split('/').at(-1)!]!
  return document
}
