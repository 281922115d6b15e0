/* One search finds a record by each of its names, and nothing of a type that the token may not read. */
import { beforeAll, describe, expect, test } from 'vitest'
import {
  ROW_MACS,
  fund,
  newCustomer,
  withdrawalOf,
  type TestCustomer,
  ownTestService,
  callerWith,
} from '../../../test/support.ts'
import { hurry, workOff } from '../../../test/work-off.ts'
import { createApiClient } from '../../access/tokens/api-clients.ts'

const service = await ownTestService()
const customer = await newCustomer(service)
const other = await newCustomer(service)
await fund(customer, '1000')

type Found = {
  type: string
  id: string
  found_by: string
  status?: string
  amount?: string
  asset?: string
  profile_id?: string
  name?: string
}[]
const search = async (q: string, call = customer.call): Promise<Found> =>
  (await call<{ items: Found }>('GET', `/v2/search?q=${encodeURIComponent(q)}`)).body.items

describe('Search Records', () => {
  test('a withdrawal by id, ref_id and hash, also while it is under way and in another case', async () => {
    const { body } = await customer.call<{ id: string }>(
      'POST',
      '/v2/transfer/crypto-withdrawals',
      withdrawalOf(customer, { ref_id: 'Invoice 7, part 2' }),
    )
    const expected = (found_by: string): unknown => [
      expect.objectContaining({ type: 'transfer', id: body.id, found_by }),
    ]
    expect(await search(body.id)).toEqual(expected('ID'))
    expect(await search(body.id.toUpperCase())).toEqual(expected('ID'))
    expect(await search(' Invoice 7, part 2 ')).toEqual(expected('REF_ID'))
    await workOff(service, () => hurry(service.db))
    const { body: ended } = await customer.call<{ crypto_tx_hash: string }>(
      'GET',
      `/v2/transfer/transfers/${body.id}`,
    )
    expect(await search(ended.crypto_tx_hash)).toEqual(expected('HASH'))
    expect(await search(ended.crypto_tx_hash, other.call)).toEqual([])
    await service.owner.query(
      `insert into replaced_transactions (customer_id, transfer_id, crypto_tx_hash, replaced_at)
       values ($1, $2, '0xreplaced', now())`,
      [customer.customer_id, body.id],
    )
    expect(await search('0xREPLACED')).toEqual(expected('HASH'))
  })

  test('an address in any spelling, and a memo', async () => {
    const { body: address } = await customer.call<{ id: string; address: string }>(
      'POST',
      '/v2/transfer/deposit-addresses',
      { profile_id: customer.profile_id, crypto_network: 'ETHEREUM', ref_id: 'an address' },
    )
    for (const q of [address.address, address.address.toLowerCase()])
      expect(await search(q)).toEqual([
        expect.objectContaining({ type: 'deposit_address', id: address.id, found_by: 'ADDRESS' }),
      ])
    const { body: instructions } = await customer.call<{ id: string; memo_id: string }>(
      'POST',
      '/v2/transfer/fiat-deposit-instructions',
      { profile_id: customer.profile_id, fiat_network: 'WIRE' },
    )
    expect(await search(instructions.memo_id)).toEqual([
      expect.objectContaining({ type: 'fiat_deposit_instructions', id: instructions.id, found_by: 'MEMO' }),
    ])
  })

  test('a withdrawal by its destination in any spelling and by its memo, once a worker has begun it', async () => {
    const destination_address = '0x52908400098527886E0F7030069857D2E4169EE7'
    const { body, status } = await customer.call<{ id: string }>(
      'POST',
      '/v2/transfer/crypto-withdrawals',
      withdrawalOf(customer, {
        ref_id: 'to one address',
        destination_address: destination_address.toLowerCase(),
      }),
    )
    expect(status).toBe(200)
    await workOff(service, () => hurry(service.db))
    for (const q of [destination_address, destination_address.toLowerCase()]) {
      expect(await search(q)).toContainEqual(expect.objectContaining({ id: body.id, found_by: 'ADDRESS' }))
      expect(await search(q, other.call)).toEqual([])
    }
    // Of any number of withdrawals to one address, the newest are found.
    const { rows } = await service.owner.query<{ id: string }>(
      `insert into transfers (customer_id, id, profile_id, type, direction, status, asset, amount, fee, total, created_at, updated_at)
       select customer_id, gen_random_uuid(), profile_id, type, direction, 'FAILED', asset, amount, fee, total, now(), now()
       from transfers, generate_series(1, 60) where customer_id = $1 and id = $2
       returning id`,
      [customer.customer_id, body.id],
    )
    await service.owner.query(
      `insert into withdrawal_names select $1, 'a memo', id, 'MEMO' from unnest($2::uuid[]) as t (id)`,
      [customer.customer_id, rows.map(({ id }) => id)],
    )
    const found = await search('a memo')
    expect(found).toHaveLength(50)
    expect(new Set(found.map(({ found_by }) => found_by))).toEqual(new Set(['MEMO']))
  })

  describe('by a part of a name', () => {
    const byPrefix = (id: string) => expect.objectContaining({ id, found_by: 'PREFIX' }) as unknown
    let own: TestCustomer
    let payment: { id: string }
    let hash: string
    beforeAll(async () => {
      own = await newCustomer(service)
      await fund(own, '100')
      const destination_address = '0x6275abCdef000000000000000000000000012345'.toLowerCase()
      const { body } = await own.call<{ id: string }>(
        'POST',
        '/v2/transfer/crypto-withdrawals',
        withdrawalOf(own, { amount: '26.5', destination_address }),
      )
      payment = body
      await workOff(service, () => hurry(service.db))
      const ended = await own.call<{ crypto_tx_hash: string }>('GET', `/v2/transfer/transfers/${payment.id}`)
      hash = ended.body.crypto_tx_hash
    })

    test('an id by its first 8 digits, and as the console writes it', async () => {
      const { id } = payment
      const digits = id.replaceAll('-', '')
      const short = `${id.slice(0, 8)}…${id.slice(-6)}`
      for (const q of [id.slice(0, -1), digits.slice(0, 20), digits.slice(0, 20).toUpperCase(), short])
        expect(await search(q, own.call), q).toEqual([byPrefix(id)])
      expect(await search(id.slice(0, 8), own.call)).toContainEqual(byPrefix(id))
      expect(await search(id.slice(0, 7), own.call)).toEqual([])
      expect(await search(short, other.call)).toEqual([])
      expect(await search(`${id.slice(0, 8)}…000000`, own.call)).toEqual([])
    })

    test('a hash, and an address in any capitals', async () => {
      const { body } = await own.call<{ destination_address: string }>(
        'GET',
        `/v2/transfer/transfers/${payment.id}`,
      )
      const address = body.destination_address
      const short = (text: string) => `${text.slice(0, 8)}…${text.slice(-6)}`
      for (const q of [hash.slice(0, 8), hash.slice(0, 30), short(hash), hash.slice(0, 8).toUpperCase()])
        expect(await search(q.replace('0X', '0x'), own.call), q).toEqual([byPrefix(payment.id)])
      for (const q of [address.slice(0, 8), '0x6275ABCD', short(address), `${address.slice(0, 8)}...012345`])
        expect(await search(q, own.call), q).toEqual([byPrefix(payment.id)])
      for (const q of [address.slice(0, 7), '0x6275ae', hash.slice(0, 7), `${address.slice(0, 8)}…654321`])
        expect(await search(q, own.call), q).toEqual([])
      const { body: deposits } = await own.call<{ id: string; address: string }>(
        'POST',
        '/v2/transfer/deposit-addresses',
        { profile_id: own.profile_id, crypto_network: 'SOLANA', ref_id: 'beginning' },
      )
      expect(await search(deposits.address.slice(0, 10), own.call)).toEqual([byPrefix(deposits.id)])
      expect(await search(deposits.address.slice(0, 10), other.call)).toEqual([])
    })

    test('names in any capitals, by their beginnings', async () => {
      await own.call('POST', '/v2/profiles', { nickname: 'Payroll 100%_a' })
      await own.call('POST', '/v2/identity/identities', {
        ref_id: 'ada',
        person_details: { first_name: 'Ada', last_name: 'Lovelace' },
      })
      await createApiClient(service.db, ROW_MACS, own.customer_id, ['transfer:read_transfer'], {
        name: 'Shop backend',
      })
      const found = async (q: string) =>
        (await search(q, own.call)).map(({ type, found_by, name }) => `${type} ${found_by} ${name}`)
      expect(await found('payr')).toEqual(['profile NAME Payroll 100%_a'])
      expect(await found('PAYROLL 100%_')).toEqual(['profile NAME Payroll 100%_a'])
      expect(await found('Payroll 1__')).toEqual([])
      expect(await found('pa')).toEqual([])
      for (const q of ['ada l', 'lovel']) expect(await found(q)).toEqual(['identity NAME Ada Lovelace'])
      expect(await found('shop b')).toEqual(['api_client NAME Shop backend'])
      expect(await search('payr', other.call)).toEqual([])
    })

    test('names in any capitals of any script, whatever the locale of the database is', async () => {
      const people: [first: string, last: string, spellings: string[]][] = [
        ['Élodie', 'Østby', ['Élodie', 'élodie', 'ÉLODIE', 'E\u0301lodie', 'Østby', 'øSTBY', 'élodie øst']],
        ['Юлия', 'Шарапова', ['Шарапова', 'шарапова', 'ШАРАПОВА', 'юлия ш']],
        ['Ömer', 'Çelik', ['Ömer', 'ömer', 'ÇELIK', 'çelik', 'C\u0327elik']],
        ['Νίκος', 'ΠΑΠΑΣ', ['νίκος', 'ΝΊΚΟΣ', 'νίκοσ', 'Παπας', 'παπασ']],
        ['İpek', 'Işık', ['İpek', 'ipek', 'İPEK', 'IPEK', 'Işık', 'ışık', 'IŞIK']],
        ['E\u0301mile', 'Größe', ['Émile', 'émile', 'Größe', 'GRÖSSE', 'GRÖẞE', 'grösse']],
        ['小明', '王', ['小明', '小明 王']],
      ]
      for (const [index, [first_name, last_name]] of people.entries()) {
        const person_details = { first_name, last_name }
        await own.call('POST', '/v2/identity/identities', { ref_id: `person-${index}`, person_details })
      }
      for (const nickname of ['ΩMEGA', 'Größe']) await own.call('POST', '/v2/profiles', { nickname })
      const found = async (q: string) =>
        (await search(q, own.call)).map(({ type, name }) => `${type} ${name}`)
      for (const [first, last, spellings] of people)
        for (const q of spellings) expect(await found(q), q).toContain(`identity ${first} ${last}`)
      for (const q of ['ΩMEGA', 'ωmega', 'Ωme']) expect(await found(q), q).toEqual(['profile ΩMEGA'])
      for (const q of ['größe', 'GRÖSSE', 'GRÖẞE']) expect(await found(q), q).toContain('profile Größe')
      for (const q of ['elodie', 'Omer', 'Grosse', 'ÉLODIE Ø_TBY', '明小'])
        expect(await found(q), q).toEqual([])
    })

    test('an amount or a total, with what tells the records apart', async () => {
      const nickname = (await own.call<{ nickname: string }>('GET', `/v2/profiles/${own.profile_id}`)).body
        .nickname
      const details = { asset: 'USDP', amount: '26.5', profile_id: own.profile_id, name: nickname }
      for (const q of ['26.5', '26.50', '26.5 usdp', '−26.5 USDP', '+26.5'])
        expect(await search(q, own.call), q).toMatchObject([
          { ...details, id: payment.id, found_by: 'AMOUNT' },
        ])
      for (const q of ['26.5 BTC', '26', '26.51', '1 26.5']) expect(await search(q, own.call), q).toEqual([])
      expect(await search('100 USD', own.call)).toMatchObject([{ amount: '100', asset: 'USD' }])
      await fund(own, '12345.6')
      for (const q of ['12 345.6', '12\u202f345.6 USD', '12,345.6'])
        expect(await search(q, own.call), q).toMatchObject([{ amount: '12345.6' }])
      // The name of a profile is told to those who may read profiles.
      const call = await callerWith(service, own, ['transfer:read_transfer'])
      const [found] = await search('26.5', call)
      expect(found).toMatchObject({ id: payment.id, amount: '26.5', profile_id: own.profile_id })
      expect(found).not.toHaveProperty('name')
      expect(await search('payr', call)).toEqual([])
    })
  })

  test('types that the token may not read are left out', async () => {
    expect(await search(customer.profile_id)).toEqual([
      expect.objectContaining({ type: 'profile', id: customer.profile_id }),
    ])
    const call = await callerWith(service, customer, ['transfer:read_transfer'])
    expect(await search(customer.profile_id, call)).toEqual([])
  })

  test('text that names nothing finds nothing', async () => {
    for (const q of ['nothing has this name', "'; drop table transfers", '%', '🪙'])
      expect(await search(q), q).toEqual([])
  })
})
