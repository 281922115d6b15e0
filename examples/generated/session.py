"""README's session with a client that openapi-python-client has generated as the package `bursar`."""

import json
import os
import time

import httpx
from bursar import AuthenticatedClient
from bursar.api.sandbox import initiate_sandbox_fiat_deposit
from bursar.api.statements import list_statements
from bursar.api.transfers import create_crypto_withdrawal, get_transfer
from bursar.models import CreateCryptoWithdrawalBody, InitiateSandboxFiatDepositBody, Problem

with open(os.environ["CREDENTIALS"]) as file:
    demo = json.load(file)
signed = httpx.post(
    demo["token_url"],
    data={"grant_type": "client_credentials"},
    auth=(demo["client_id"], demo["client_secret"]),
).json()
client = AuthenticatedClient(base_url=demo["base_url"], token=signed["access_token"])

wire = InitiateSandboxFiatDepositBody.from_dict(
    {
        "amount": "250.00",
        "asset": "USD",
        "memo_id": demo["memo_id"],
        "fiat_network_instructions": {"wire": {}},
    }
)
assert not isinstance(initiate_sandbox_fiat_deposit.sync(client=client, body=wire), Problem)

payout = CreateCryptoWithdrawalBody.from_dict(
    {
        "profile_id": demo["profile_id"],
        "asset": "USDP",
        "balance_asset": "USD",
        "crypto_network": "ETHEREUM",
        "amount": "25",
        "destination_address": "0x52908400098527886E0F7030069857D2E4169EE7",
    }
)
transfer = create_crypto_withdrawal.sync(client=client, body=payout)
while transfer.status == "PENDING":
    time.sleep(0.1)
    transfer = get_transfer.sync(client=client, id=transfer.id)

statements = list_statements.sync(client=client, customer_id=demo["customer_id"]).statements
print(f"{transfer.amount} {transfer.asset}: {transfer.status}; {len(statements)} statements")
