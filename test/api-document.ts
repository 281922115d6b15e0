import { Ajv2020 } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import type { TestService } from './support.ts'

type Named = { method: string; url: string }

/** `/v2/profiles/:id` is `/v2/profiles/{id}` in the document. */
export const documentedPath = (url: string) => url.replaceAll(/:(\w+)/g, '{$1}')

/**
 * The API document of a service, as the schemas of its requests and replies. One instance for all schemas: one instance
 * per schema blocked the process for so long that the service took its database for unreachable.
 */
export class DocumentSchemas {
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true })

  constructor(document: object) {
    ajvFormats.default(this.#ajv)
    this.#ajv.addSchema(document, 'document')
  }

  static async of(service: Pick<TestService, 'app'>): Promise<DocumentSchemas> {
    return new DocumentSchemas((await service.app.inject('/openapi.json')).json<object>())
  }

  /** Returns the validator of the schema at this place in the document: it returns what a value breaks. */
  at(...place: string[]): (value: unknown) => object[] {
    const pointer = place.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')
    const validate = this.#ajv.compile({ $ref: `document#/${encodeURI(pointer)}` })
    return (value) => {
      validate(value)
      return validate.errors ?? []
    }
  }

  /** Returns the validators of an operation's body and of its reply. */
  body = (operation: Named) => this.#json(operation, 'requestBody')
  reply = (operation: Named) => this.#json(operation, 'responses', '200')

  #json({ method, url }: Named, ...part: string[]) {
    const place = ['paths', documentedPath(url), method.toLowerCase(), ...part]
    return this.at(...place, 'content', 'application/json', 'schema')
  }
}
