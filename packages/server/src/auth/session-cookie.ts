import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/**
 * Sessions of the dashboard: an API key of the type `session` in a cookie that scripts cannot read. Requests that write also carry a token in a header, which
 * pages of other origins can neither read nor send (https://cheatsheetseries.owasp.org/cheatsheets/Cross-Site_Request_Forgery_Prevention_Cheat_Sheet.html).
 */
export interface SessionCookies {
  /** The key in the cookie of a request; undefined without a session. */
  read(request: IncomingMessage): string | undefined;
  /** Value of `Set-Cookie`; without `key` the browser forgets the session. */
  write(request: IncomingMessage, key?: string, expiresAt?: Date): string;
  /** The token that writes of this session carry as `x-csrf-token`. */
  csrfToken(mask: string): string;
  hasCsrfToken(request: IncomingMessage, mask: string): boolean;
}

const NAME = 'gateway_session';
/** Browsers take a cookie with this prefix only over HTTPS and for this host (https://www.rfc-editor.org/rfc/rfc6265bis). */
const SECURE_NAME = `__Host-${NAME}`;

/** @param key for the tokens; the same in every server */
export function sessionCookies({ isHttps, key }: { readonly isHttps: boolean; readonly key: Buffer }): SessionCookies {
  // A proxy that ends TLS says so. A client that lies about it only makes its own cookie stricter.
  const isSecure = ({ headers }: IncomingMessage) => isHttps || headers['x-forwarded-proto'] === 'https';
  const nameOf = (request: IncomingMessage) => (isSecure(request) ? SECURE_NAME : NAME);
  const csrfToken = (mask: string) => createHmac('sha256', key).update(mask).digest('base64url');
  return {
    csrfToken,
    read(request) {
      const name = `${nameOf(request)}=`;
      const pair = (request.headers.cookie ?? '').split('; ').find((it) => it.startsWith(name));
      return pair?.slice(name.length);
    },
    write(request, value = '', expiresAt = new Date(0)) {
      const secure = isSecure(request) ? '; Secure' : '';
      return `${nameOf(request)}=${value}; Path=/; HttpOnly; SameSite=Lax${secure}; Expires=${expiresAt.toUTCString()}`;
    },
    hasCsrfToken({ headers }, mask) {
      const [given, expected] = [Buffer.from(String(headers['x-csrf-token'] ?? '')), Buffer.from(csrfToken(mask))];
      return given.length === expected.length && timingSafeEqual(given, expected);
    },
  };
}
