import http from 'node:http';
import { loopback } from './ports.js';

/** A fake AWS token service. */
export interface Sts {
  readonly url: string;
  /** Parameters of each request, and the access key that signed it. */
  readonly assumed: { readonly params: Record<string, string>; readonly key: string | undefined }[];
  refusal: string | undefined;
  close(): void;
}

/** The access key that signed a request. */
export const keyOf = ({ headers }: http.IncomingMessage) =>
  /Credential=([^/]+)\//.exec(headers.authorization ?? '')?.[1];

/**
 * Starts a service that returns the credentials `ROLE`, `role-secret` and `role-token` for any
 * role.
 */
export async function sts(): Promise<Sts> {
  const server = http.createServer((request, response) => {
    void request.toArray().then((parts) => {
      peer.assumed.push({
        params: Object.fromEntries(new URLSearchParams(Buffer.concat(parts).toString())),
        key: keyOf(request),
      });
      response.writeHead(peer.refusal === undefined ? 200 : 403, { 'content-type': 'text/xml' });
      if (peer.refusal !== undefined) {
        response.end(
          `<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>${peer.refusal}</Message></Error></ErrorResponse>`,
        );
        return;
      }
      const lasting = new Date(Date.now() + 3_600_000).toISOString();
      const given = `<AccessKeyId>ROLE</AccessKeyId><SecretAccessKey>role-secret</SecretAccessKey><SessionToken>role-token</SessionToken><Expiration>${lasting}</Expiration>`;
      response.end(
        `<AssumeRoleResponse><AssumeRoleResult><Credentials>${given}</Credentials></AssumeRoleResult></AssumeRoleResponse>`,
      );
    });
  });
  const peer: Sts = {
    url: `http://127.0.0.1:${await loopback(server)}`,
    assumed: [],
    refusal: undefined,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
  return peer;
}

/** Removes all AWS credentials from this process except these variables. */
export function onlyThese(variables: Readonly<Record<string, string>>): void {
  for (const name of Object.keys(process.env))
    if (name.startsWith('AWS_')) delete process.env[name];
  const none = {
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_CONFIG_FILE: '/nowhere',
    AWS_SHARED_CREDENTIALS_FILE: '/nowhere',
  };
  Object.assign(process.env, none, variables);
}
