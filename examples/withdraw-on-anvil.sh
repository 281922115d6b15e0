#!/usr/bin/env bash
# A deposit and a withdrawal on a real chain: starts anvil, a local Ethereum node, and a Bursar beside it whose Ethereum is
# not simulated; deposits 2 ETH, withdraws 1.5, and ends both again. Run it in the clone, after `npm ci`.
# PORT and CHAIN_PORT change the ports that the two listen on.
set -eu
cd "$(dirname "$0")/.."
DIR=$(mktemp -d); chmod 755 $DIR
PORT=${PORT:-8081}; CHAIN_PORT=${CHAIN_PORT:-8545}; CHAIN=http://127.0.0.1:$CHAIN_PORT
echo '{"ETHEREUM":{"adapter":"evm","rpc_url":"'$CHAIN'","chain_id":31337,"hot_wallet_key":{"env":"HOT_WALLET_KEY"},"deposit_key":{"env":"DEPOSIT_KEY"},"confirmations":1,"fee_ceiling":"100"}}' > $DIR/networks.json
export PORT BURSAR_DATA_DIR=$DIR BURSAR_NETWORKS_FILE=$DIR/networks.json
export DEPOSIT_KEY='test test test test test test test test test test test junk'
export HOT_WALLET_KEY=0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80

node_modules/.bin/anvil --port $CHAIN_PORT > $DIR/anvil.log & ANVIL=$!
node dist/main.js serve --json > $DIR/started 2> $DIR/bursar.log & BURSAR=$!
trap 'kill $BURSAR; wait $BURSAR || true; kill $ANVIL; rm -rf $DIR' EXIT
echo 'Bursar starts ...'
until [ -s $DIR/started ]; do kill -0 $BURSAR || { cat $DIR/bursar.log; exit 1; }; sleep 0.2; done
rpc() { curl -s $CHAIN -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"'$1'","params":'"$2"'}'; }
c() { node -p "JSON.parse(fs.readFileSync('$DIR/sandbox-credentials.json'))['$1']"; }
TOKEN=$(curl -s $(c token_url) -u $(c client_id):$(c client_secret) -d grant_type=client_credentials | node -p 'JSON.parse(fs.readFileSync(0)).access_token')
BASE=$(c base_url); PROFILE=$(c profile_id)
api() { curl -s -w '\n' -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' $BASE"$@"; }

echo 'One of the accounts that anvil makes pays 2 ETH to an address of the profile:'
ADDRESS=$(api /v2/transfer/deposit-addresses -d '{"profile_id":"'$PROFILE'","crypto_network":"ETHEREUM"}' | node -p 'JSON.parse(fs.readFileSync(0)).address')
rpc eth_sendTransaction '[{"from":"0x70997970C51812dc3A010C7d01b50e0d17dc79C8","to":"'$ADDRESS'","value":"0x1bc16d674ec80000"}]'; echo
for try in $(seq 60); do api /v2/profiles/$PROFILE/balances/ETH | grep -q '"available":"2"' && break; sleep 0.5; done
api "/v2/transfer/transfers?type=CRYPTO_DEPOSIT"
echo '1.5 ETH leave:'
api /v2/transfer/crypto-withdrawals -d '{"profile_id":"'$PROFILE'","asset":"ETH","crypto_network":"ETHEREUM","amount":"1.5","destination_address":"0x52908400098527886E0F7030069857D2E4169EE7","ref_id":"first-on-anvil"}'
for try in $(seq 60); do api "/v2/transfer/transfers?ref_ids=first-on-anvil" | grep -q COMPLETED && break; sleep 0.5; done
echo 'They have arrived, says Bursar:'
api "/v2/transfer/transfers?ref_ids=first-on-anvil"
echo 'And so says the chain, in wei:'
rpc eth_getBalance '["0x52908400098527886E0F7030069857D2E4169EE7","latest"]' | node -p 'BigInt(JSON.parse(fs.readFileSync(0)).result)'
echo 'What an operator sees (the hot wallet is an account of anvil, which was rich before):'
node dist/main.js networks status
