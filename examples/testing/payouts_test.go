// A suite for go test against a sandbox. CREDENTIALS names the sandbox's credentials file. Standard library only.
package payouts

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"
)

type object = map[string]any

type client struct{ baseURL, token, profileID string }

func newClient(t *testing.T, credentials object) *client {
	t.Helper()
	answer, err := http.PostForm(credentials["token_url"].(string), url.Values{
		"grant_type":    {"client_credentials"},
		"client_id":     {credentials["client_id"].(string)},
		"client_secret": {credentials["client_secret"].(string)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var token object
	if err := json.NewDecoder(answer.Body).Decode(&token); err != nil {
		t.Fatal(err)
	}
	return &client{
		credentials["base_url"].(string), token["access_token"].(string), credentials["profile_id"].(string),
	}
}

func (c *client) call(t *testing.T, method, path string, body any, failNext string) (int, object) {
	t.Helper()
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	request, err := http.NewRequest(method, c.baseURL+path, &content)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if failNext != "" {
		request.Header.Set("Bursar-Fail-Next", failNext)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var result object
	if err := json.NewDecoder(answer.Body).Decode(&result); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, result
}

// newSuite returns a client of a customer of its own: other suites do not see its records.
func newSuite(t *testing.T) *client {
	t.Helper()
	content, err := os.ReadFile(os.Getenv("CREDENTIALS"))
	if err != nil {
		t.Fatal(err)
	}
	var demo object
	if err := json.Unmarshal(content, &demo); err != nil {
		t.Fatal(err)
	}
	_, customer := newClient(t, demo).call(t, "POST", "/v2/sandbox/customers", object{"name": "go suite"}, "")
	suite := newClient(t, customer)
	suite.call(t, "POST", "/v2/sandbox/profiles/"+suite.profileID+"/deposit", object{"asset": "USD", "amount": "100"}, "")
	return suite
}

func (c *client) payout(t *testing.T, refID, destination, amount string) (int, object) {
	t.Helper()
	return c.call(t, "POST", "/v2/transfer/crypto-withdrawals", object{
		"profile_id": c.profileID, "asset": "USDP", "balance_asset": "USD", "crypto_network": "ETHEREUM",
		"amount": amount, "destination_address": destination, "ref_id": refID,
	}, "")
}

func (c *client) ended(t *testing.T, transfer object) string {
	t.Helper()
	for transfer["status"] == "PENDING" {
		time.Sleep(50 * time.Millisecond)
		_, transfer = c.call(t, "GET", "/v2/transfer/transfers/"+transfer["id"].(string), nil, "")
	}
	return transfer["status"].(string)
}

const paid = "0x52908400098527886E0F7030069857D2E4169EE7"
const refused = "0x6275727361722073616E64626F78203031000000"

func TestPayouts(t *testing.T) {
	suite := newSuite(t)

	if _, transfer := suite.payout(t, "paid", paid, "10"); suite.ended(t, transfer) != "COMPLETED" {
		t.Error("a payout is not paid")
	}
	if _, transfer := suite.payout(t, "refused", refused, "10"); suite.ended(t, transfer) != "FAILED" {
		t.Error("a payout to a refused address does not fail")
	}
	if status, _ := suite.payout(t, "poor", paid, "5000"); status != http.StatusForbidden {
		t.Errorf("a payout beyond the balance is a %d", status)
	}

	suite.call(t, "GET", "/v2/profiles", nil, "503")
	for _, expected := range []int{503, 200, 409} {
		if status, _ := suite.payout(t, "once", paid, "10"); status != expected {
			t.Errorf("a repeat is a %d, not %d", status, expected)
		}
	}
}
