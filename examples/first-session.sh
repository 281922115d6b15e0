#!/usr/bin/env bash
# A first session with curl: a deposit, a withdrawal, an orchestration and a statement. Needs a sandbox that runs
# (`npm start`). CREDENTIALS names the file with its demo customer's credentials.
set -eu
CREDENTIALS=${CREDENTIALS:-.bursar/sandbox-credentials.json}
# A member of the credentials.
c() { node -p "JSON.parse(fs.readFileSync('$CREDENTIALS'))['$1']"; }
TOKEN=$(curl -s "$(c token_url)" -u "$(c client_id):$(c client_secret)" -d grant_type=client_credentials |
  node -p 'JSON.parse(fs.readFileSync(0)).access_token')
BASE=$(c base_url); PROFILE=$(c profile_id)
api() { curl -s -w '\n' -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' "$BASE$@"; }
# A ref_id is good once, so each run has its own.
REF_ID=payout-$(date +%s)

echo 'A wire of 250 USD arrives:'
api /v2/sandbox/fiat-deposits -d '{"amount":"250.00","asset":"USD","memo_id":"'"$(c memo_id)"'","fiat_network_instructions":{"wire":{}}}'
echo 'It is in the balance:'
api "/v2/profiles/$PROFILE/balances"
echo '25 USDP leave for Ethereum, paid from the USD:'
api /v2/transfer/crypto-withdrawals -d '{"profile_id":"'"$PROFILE"'","asset":"USDP","balance_asset":"USD","crypto_network":"ETHEREUM","amount":"25","destination_address":"0x52908400098527886E0F7030069857D2E4169EE7","ref_id":"'"$REF_ID"'"}'
echo "A wire of 100 USD with a rule's memo starts an orchestration:"
api /v2/sandbox/fiat-deposits -d '{"amount":"100.00","asset":"USD","memo_id":"'"$(c orchestration_memo_id)"'","fiat_network_instructions":{"wire":{}}}'
echo 'A few seconds later the withdrawal and the orchestration are COMPLETED:'
sleep 4
api "/v2/transfer/transfers?ref_ids=$REF_ID"
api "/v2/orchestration/orchestrations?orchestration_rule_id=$(c orchestration_rule_id)&limit=1"
echo 'The rewards that the USDG balance earned in the last three months:'
api "/v2/statements?customer_id=$(c customer_id)"
