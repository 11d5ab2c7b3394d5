// A certified authorisation server with two clients of ours and one of the FHIR server's: node server.mjs PORT SECONDS.
import Provider from "oidc-provider";

const [port, seconds] = process.argv.slice(2).map(Number);
const client = (client_id, token_endpoint_auth_method) => ({
  client_id,
  client_secret: process.env.CLIENT_SECRET,
  token_endpoint_auth_method,
  scope: "system/*.rs",
  grant_types: ["client_credentials"],
  redirect_uris: [],
  response_types: [],
});
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    client("spinney basic", "client_secret_basic"),
    client("spinney-post", "client_secret_post"),
    client("fhir", "client_secret_basic"),
  ],
  clientAuthMethods: ["client_secret_basic", "client_secret_post"],
  scopes: ["system/*.rs", "system/*.cruds"],
  ttl: { ClientCredentials: seconds },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    introspection: { enabled: true, allowedPolicy: (_ctx, asking) => asking.clientId === "fhir" },
  },
});
provider.listen(port, "127.0.0.1");
