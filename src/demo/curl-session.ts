/** A first session, ready to paste. README shows the same. */
export const curlSession = (file: string) => `
  c() { node -p "JSON.parse(fs.readFileSync('${file}'))['$1']"; }
  TOKEN=$(curl -s $(c token_url) -u $(c client_id):$(c client_secret) -d grant_type=client_credentials | node -p 'JSON.parse(fs.readFileSync(0)).access_token')
  api() { curl -s -w '\\n' -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' $(c base_url)"$@"; }

  echo 'A wire of 250 USD arrives:'
  api /v2/sandbox/fiat-deposits -d '{"amount":"250.00","asset":"USD","memo_id":"'$(c memo_id)'","fiat_network_instructions":{"wire":{}}}'
  echo 'The balance is there:'
  api /v2/profiles/$(c profile_id)/balances
  echo '25 USDP leave for Ethereum, paid from the USD:'
  api /v2/transfer/crypto-withdrawals -d '{"profile_id":"'$(c profile_id)'","asset":"USDP","balance_asset":"USD","crypto_network":"ETHEREUM","amount":"25","destination_address":"0x52908400098527886E0F7030069857D2E4169EE7","ref_id":"first-payout"}'
  echo 'A wire of 100 USD with the memo of a rule sets off an orchestration:'
  api /v2/sandbox/fiat-deposits -d '{"amount":"100.00","asset":"USD","memo_id":"'$(c orchestration_memo_id)'","fiat_network_instructions":{"wire":{}}}'
  echo 'A few seconds later both have arrived:'
  sleep 4; api "/v2/transfer/transfers?ref_ids=first-payout"
  api "/v2/orchestration/orchestrations?orchestration_rule_id=$(c orchestration_rule_id)&limit=1"
  echo 'What the USDG of the last three months earned:'
  api "/v2/statements?customer_id=$(c customer_id)"
`
