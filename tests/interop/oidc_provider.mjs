// A certified authorization server (panva's oidc-provider), set up as a hosted MCP server would be.
import http from 'node:http';
import { Provider } from 'oidc-provider';

const [port, resource] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
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
  ],
  clientDefaults: { token_endpoint_auth_method: 'none' },
  features: {
    registration: { enabled: true },
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
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  issueRefreshToken: () => true,
  rotateRefreshToken: () => true,
  scopes: ['openid', 'offline_access', 'read', 'write'],
  ttl: { AccessToken: 2, Grant: 600, Interaction: 600, RefreshToken: 600, Session: 600 },
});
http.createServer(provider.callback()).listen(port, '127.0.0.1', () => console.log('ready'));
