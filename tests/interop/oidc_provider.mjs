// A certified authorization server (panva's oidc-provider), set up as a hosted MCP server would be.
import http from 'node:http';
import { Provider } from 'oidc-provider';

const [port, resource, document = '', life = '2'] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

// Any port of loopback will do for a native client (RFC 8252 section 7.3).
function native(id, secret, path) {
  return {
    client_id: id,
    client_secret: secret,
    token_endpoint_auth_method: 'client_secret_basic',
    application_type: 'native',
    redirect_uris: [`http://127.0.0.1${path}`],
    grant_types: ['authorization_code', 'refresh_token'],
    scope: 'openid offline_access read write',
  };
}

// The document of a client whose id is an address, as its host would serve it.
const described = {
  client_id: document,
  client_name: 'Holdfast',
  application_type: 'native',
  redirect_uris: ['http://127.0.0.1/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
};
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'resource-server',
      client_secret: 'resource-secret',
      token_endpoint_auth_method: 'client_secret_basic',
      redirect_uris: [],
      response_types: [],
      grant_types: ['client_credentials'],
    },
    native('given', 'given-secret', '/callback'),
    native('proxy', 'proxy-secret', '/auth/callback'),
  ],
  clientDefaults: { token_endpoint_auth_method: 'none' },
  features: {
    registration: { enabled: true },
    ...(document && { clientIdMetadataDocument: { enabled: true, ack: 'draft-02' } }),
    revocation: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    deviceFlow: { enabled: true },
    clientCredentials: { enabled: true },
    dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 1), requireNonce: () => true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: () => ({
        scope: 'read write',
        audience: resource,
        accessTokenFormat: 'opaque',
      }),
      useGrantedResource: () => true,
    },
  },
  fetch: async () =>
    new Response(JSON.stringify(described), { headers: { 'content-type': 'application/json' } }),
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  issueRefreshToken: () => true,
  rotateRefreshToken: () => true,
  scopes: ['openid', 'offline_access', 'read', 'write'],
  ttl: { AccessToken: Number(life), Grant: 600, Interaction: 600, RefreshToken: 600, Session: 600 },
});
http.createServer(provider.callback()).listen(port, '127.0.0.1', () => console.log('ready'));
