"""A suite for pytest against a sandbox. CREDENTIALS names the sandbox's credentials file. Standard library only."""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest


class Client:
    def __init__(self, base_url, token_url, client_id, client_secret, **_):
        self.base_url = base_url
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
        with urllib.request.urlopen(token_url, urllib.parse.urlencode(form).encode()) as answer:
            self.token = json.load(answer)["access_token"]

    def call(self, method, path, body=None, headers={}):
        request = urllib.request.Request(
            self.base_url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **headers},
        )
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.load(refusal)


@pytest.fixture(scope="module")
def suite():
    with open(os.environ["CREDENTIALS"]) as file:
        sandbox = Client(**json.load(file))
    # A customer of its own: other suites do not see its records.
    _, customer = sandbox.call("POST", "/v2/sandbox/customers", {"name": "pytest suite"})
    bursar = Client(**customer)
    bursar.profile_id = customer["profile_id"]
    bursar.call("POST", f"/v2/sandbox/profiles/{bursar.profile_id}/deposit", {"asset": "USD", "amount": "100"})
    return bursar


def payout(suite, ref_id, destination="0x52908400098527886E0F7030069857D2E4169EE7", amount="10"):
    return suite.call(
        "POST",
        "/v2/transfer/crypto-withdrawals",
        {
            "profile_id": suite.profile_id,
            "asset": "USDP",
            "balance_asset": "USD",
            "crypto_network": "ETHEREUM",
            "amount": amount,
            "destination_address": destination,
            "ref_id": ref_id,
        },
    )


def ended(suite, transfer):
    while transfer["status"] == "PENDING":
        time.sleep(0.05)
        _, transfer = suite.call("GET", f"/v2/transfer/transfers/{transfer['id']}")
    return transfer["status"]


def test_a_payout_is_paid(suite):
    status, transfer = payout(suite, "paid")
    assert status == 200
    assert ended(suite, transfer) == "COMPLETED"


def test_a_payout_to_a_refused_address_comes_back(suite):
    _, transfer = payout(suite, "refused", "0x6275727361722073616E64626F78203031000000")
    assert ended(suite, transfer) == "FAILED"


def test_a_payout_beyond_the_balance_is_refused(suite):
    status, problem = payout(suite, "poor", amount="5000")
    assert status == 403
    assert problem["type"].endswith("/insufficient-funds")


def test_a_repeat_after_a_failure_pays_once(suite):
    suite.call("GET", "/v2/profiles", headers={"Bursar-Fail-Next": "503"})
    assert payout(suite, "once")[0] == 503
    assert payout(suite, "once")[0] == 200
    status, problem = payout(suite, "once")
    assert status == 409
    assert problem["type"].endswith("/already-exists")
