#!/usr/bin/env bash
# A deposit and a withdrawal on Stellar's test network, through a Bursar whose STELLAR is not simulated. The test network gives
# the hot wallet and a payer their coins. Run it in the clone, after `npm ci` and `npm run build`; it needs the internet.
# HORIZON and FRIENDBOT name others, PORT the port that Bursar listens on.
set -eu
cd "$(dirname "$0")/.."
DIR=$(mktemp -d); chmod 755 $DIR
HORIZON=${HORIZON:-https://horizon-testnet.stellar.org}; FRIENDBOT=${FRIENDBOT:-https://friendbot.stellar.org}
key() { node -e "const { Keypair } = require('@stellar/stellar-base'); const key = process.argv[1] ? Keypair.fromSecret(process.argv[1]) : Keypair.random(); console.log(process.argv[1] ? key.publicKey() : key.secret())" ${1:-}; }
export STELLAR_SEED=$(key) PAYER_SEED=$(key) HORIZON
WALLET=$(key $STELLAR_SEED); PAYER=$(key $PAYER_SEED)
for account in $WALLET $PAYER; do curl -sf "$FRIENDBOT?addr=$account" > /dev/null; done
echo '{"STELLAR":{"adapter":"stellar","rpc_url":"'$HORIZON'","hot_wallet_key":{"env":"STELLAR_SEED"},"fee_ceiling":"0.01"}}' > $DIR/networks.json
export PORT=${PORT:-8081} BURSAR_DATA_DIR=$DIR BURSAR_NETWORKS_FILE=$DIR/networks.json
node dist/main.js serve --json > $DIR/started 2> $DIR/bursar.log & BURSAR=$!
trap 'kill $BURSAR; wait $BURSAR || true; rm -rf $DIR' EXIT
until [ -s $DIR/started ]; do kill -0 $BURSAR || { cat $DIR/bursar.log; exit 1; }; sleep 0.2; done
c() { node -p "JSON.parse(fs.readFileSync('$DIR/sandbox-credentials.json'))['$1']"; }
TOKEN=$(curl -s $(c token_url) -u $(c client_id):$(c client_secret) -d grant_type=client_credentials | node -p 'JSON.parse(fs.readFileSync(0)).access_token')
BASE=$(c base_url); PROFILE=$(c profile_id)
api() { curl -s -w '\n' -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' $BASE"$@"; }

export ADDRESS=$(api /v2/transfer/deposit-addresses -d '{"profile_id":"'$PROFILE'","crypto_network":"STELLAR"}' | node -p 'JSON.parse(fs.readFileSync(0)).address')
echo "100 XLM are paid to $ADDRESS:"
node --input-type=module -e "
import { Account, Asset, Keypair, Networks, Operation, TransactionBuilder } from '@stellar/stellar-base'
const { HORIZON, PAYER_SEED, ADDRESS: destination } = process.env
const key = Keypair.fromSecret(PAYER_SEED)
const { sequence } = await (await fetch(HORIZON + '/accounts/' + key.publicKey())).json()
const paid = new TransactionBuilder(new Account(key.publicKey(), sequence), { fee: '1000', networkPassphrase: Networks.TESTNET })
  .addOperation(Operation.payment({ destination, asset: Asset.native(), amount: '100' })).setTimeout(120).build()
paid.sign(key)
const reply = await fetch(HORIZON + '/transactions_async', { method: 'POST', body: new URLSearchParams({ tx: paid.toXDR() }) })
console.log(reply.status, await reply.text())"
for try in $(seq 60); do api /v2/profiles/$PROFILE/balances/XLM | grep -q '"available":"100"' && break; sleep 1; done
api "/v2/transfer/transfers?type=CRYPTO_DEPOSIT"
echo '5 XLM leave:'
api /v2/transfer/crypto-withdrawals -d '{"profile_id":"'$PROFILE'","asset":"XLM","crypto_network":"STELLAR","amount":"5","destination_address":"'$PAYER'","memo":"id:42","ref_id":"first-on-stellar"}'
for try in $(seq 60); do api "/v2/transfer/transfers?ref_ids=first-on-stellar" | grep -q COMPLETED && break; sleep 1; done
api "/v2/transfer/transfers?ref_ids=first-on-stellar"
echo 'What an operator sees (the hot wallet had the coins of the test network before):'
node dist/main.js networks status
