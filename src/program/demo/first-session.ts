/** The default credentials file of `bursar api`. */
const DEFAULT_FILE = '.bursar/sandbox-credentials.json'

/**
 * Returns commands for a first deposit and withdrawal with the credentials in this file, ready to paste into a shell
 * in the current folder. README shows the same commands. examples/first-session.sh does more, with curl.
 */
export function firstSession(file: string): string {
  const api = file === DEFAULT_FILE ? 'npx bursar api' : `npx bursar api --credentials '${file}'`
  return `
  ${api} POST /v2/sandbox/fiat-deposits '{"amount":"250.00","asset":"USD","memo_id":"{memo_id}","fiat_network_instructions":{"wire":{}}}'
  ${api} GET '/v2/profiles/{profile_id}/balances/USD'
  ${api} POST /v2/transfer/crypto-withdrawals '{"profile_id":"{profile_id}","asset":"USDP","balance_asset":"USD","crypto_network":"ETHEREUM","amount":"25","destination_address":"0x52908400098527886E0F7030069857D2E4169EE7","ref_id":"first-payout"}'
  ${api} GET '/v2/transfer/transfers?ref_ids=first-payout'
`
}
