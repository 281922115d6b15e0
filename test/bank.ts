/** The deployment's bank account, as BURSAR_BANK_FILE has it. */
export const BANK = {
  account_number: '40702810',
  account_owner: 'Acme Payments Inc',
  account_owner_address: { country: 'US', address1: '1 Main Street', city: 'Springfield' },
  bank_name: 'First Example Bank',
  bank_address: { country: 'US', address1: '2 Main Street', city: 'Springfield' },
  routing_numbers: { ABA: '021000021' },
}

/** The bank account of somebody who is paid by wire, as Create Fiat Account takes it. */
export const PAYEE_ACCOUNT = {
  fiat_account_owner: { person_details: { first_name: 'Grace', last_name: 'Hopper' } },
  fiat_network_instructions: {
    wire: {
      account_number: '000987654321',
      routing_details: {
        routing_number_type: 'ABA',
        routing_number: '011401533',
        bank_name: 'Second Example Bank',
      },
    },
  },
}
