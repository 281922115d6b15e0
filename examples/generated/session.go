// README's session with a client that oapi-codegen has generated as the package bursar.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"

	"session/bursar"

	"github.com/google/uuid"
)

type credentials struct {
	BaseURL      string    `json:"base_url"`
	TokenURL     string    `json:"token_url"`
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret"`
	CustomerID   uuid.UUID `json:"customer_id"`
	ProfileID    uuid.UUID `json:"profile_id"`
	MemoID       string    `json:"memo_id"`
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func text(value string) *string { return &value }

func main() {
	ctx := context.Background()
	var demo credentials
	if err := json.Unmarshal(must(os.ReadFile(os.Getenv("CREDENTIALS"))), &demo); err != nil {
		log.Fatal(err)
	}
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {demo.ClientID}, "client_secret": {demo.ClientSecret},
	}
	signed := must(http.PostForm(demo.TokenURL, form))
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(signed.Body).Decode(&token); err != nil {
		log.Fatal(err)
	}
	client := must(bursar.NewClientWithResponses(demo.BaseURL, bursar.WithRequestEditorFn(
		func(_ context.Context, request *http.Request) error {
			request.Header.Set("Authorization", "Bearer "+token.AccessToken)
			return nil
		})))

	var wire bursar.InitiateSandboxFiatDepositJSONRequestBody
	wire.Amount, wire.Asset, wire.MemoId = "250.00", "USD", demo.MemoID
	if answer := must(client.InitiateSandboxFiatDepositWithResponse(ctx, nil, wire)); answer.StatusCode() != 200 {
		log.Fatal(string(answer.Body))
	}

	created := must(client.CreateCryptoWithdrawalWithResponse(ctx, nil, bursar.CreateCryptoWithdrawalJSONRequestBody{
		ProfileId: demo.ProfileID, Asset: "USDP", BalanceAsset: text("USD"), CryptoNetwork: "ETHEREUM", Amount: text("25"),
		DestinationAddress: "0x52908400098527886E0F7030069857D2E4169EE7",
	}))
	transfer := created.JSON200
	if transfer == nil {
		log.Fatal(string(created.Body))
	}
	for transfer.Status == "PENDING" {
		time.Sleep(100 * time.Millisecond)
		transfer = must(client.GetTransferWithResponse(ctx, transfer.Id)).JSON200
	}

	statements := must(client.ListStatementsWithResponse(ctx, &bursar.ListStatementsParams{CustomerId: demo.CustomerID.String()}))
	fmt.Printf("%s %s: %s; %d statements\n", transfer.Amount, transfer.Asset, transfer.Status, len(statements.JSON200.Statements))
}
