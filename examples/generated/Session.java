import bursar.ApiClient;
import bursar.api.SandboxApi;
import bursar.api.StatementsApi;
import bursar.api.TransfersApi;
import bursar.model.CreateCryptoWithdrawalRequest;
import bursar.model.InitiateSandboxFiatDepositRequest;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;

/** README's session with a client that openapi-generator has generated (java, native). */
public final class Session {
  public static void main(String[] arguments) throws Exception {
    var json = new ObjectMapper();
    var demo = json.readTree(Path.of(System.getenv("CREDENTIALS")).toFile());
    var form =
        "grant_type=client_credentials&client_id=%s&client_secret=%s"
            .formatted(demo.get("client_id").asText(), demo.get("client_secret").asText());
    var request =
        HttpRequest.newBuilder(URI.create(demo.get("token_url").asText()))
            .header("Content-Type", "application/x-www-form-urlencoded")
            .POST(HttpRequest.BodyPublishers.ofString(form))
            .build();
    var signed = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    var token = json.readTree(signed.body()).get("access_token").asText();
    var client = new ApiClient();
    client.updateBaseUri(demo.get("base_url").asText());
    client.setRequestInterceptor(builder -> builder.header("Authorization", "Bearer " + token));
    var transfers = new TransfersApi(client);

    // A text read as JSON shows the members by their names of the contract.
    var wire =
        """
        {"amount":"250.00","asset":"USD","memo_id":"%s","fiat_network_instructions":{"wire":{}}}"""
            .formatted(demo.get("memo_id").asText());
    new SandboxApi(client)
        .initiateSandboxFiatDeposit(
            client.getObjectMapper().readValue(wire, InitiateSandboxFiatDepositRequest.class), null);

    var payout =
        """
        {"profile_id":"%s","asset":"USDP","balance_asset":"USD","crypto_network":"ETHEREUM","amount":"25",
         "destination_address":"0x52908400098527886E0F7030069857D2E4169EE7"}"""
            .formatted(demo.get("profile_id").asText());
    var transfer =
        transfers.createCryptoWithdrawal(
            client.getObjectMapper().readValue(payout, CreateCryptoWithdrawalRequest.class), null, null);
    while (transfer.getStatus().getValue().equals("PENDING")) {
      Thread.sleep(100);
      transfer = transfers.getTransfer(transfer.getId());
    }

    var statements =
        new StatementsApi(client)
            .listStatements(demo.get("customer_id").asText(), null, null, null, null, null, null);
    System.out.printf(
        "%s %s: %s; %d statements%n",
        transfer.getAmount(), transfer.getAsset(), transfer.getStatus().getValue(), statements.getStatements().size());
  }
}
