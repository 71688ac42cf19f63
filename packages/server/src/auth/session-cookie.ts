import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** A cookie that scripts cannot read. */
export interface Cookie {
  /** Its value in a request; undefined without one. */
  read(request: IncomingMessage): string | undefined;
  /** Value of `Set-Cookie`; without `value` the browser forgets the cookie. */
  write(request: IncomingMessage, value?: string, expiresAt?: Date): string;
}

/**
 * Sessions of the dashboard: an API key of the type `session` in a cookie. Requests that write also carry a token in a header, which
 * pages of other origins can neither read nor send (https://cheatsheetseries.owasp.org/cheatsheets/Cross-Site_Request_Forgery_Prevention_Cheat_Sheet.html).
 */
export interface SessionCookies extends Cookie {
  /** What a browser keeps while its user is at the OpenID Connect provider. */
  readonly signIn: Cookie;
  /** The token that writes of this session carry as `x-csrf-token`. */
  csrfToken(mask: string): string;
  hasCsrfToken(request: IncomingMessage, mask: string): boolean;
  /** Value of `Set-Cookie` by which the browser is known when this account signs in again. It proves a former password, and opens nothing. */
  writeDevice(request: IncomingMessage, email: string): string;
  isKnownDevice(request: IncomingMessage, email: string): boolean;
}

const DEVICE_MS = 365 * 86_400_000;

/** @param key for the tokens; the same in every server */
export function sessionCookies({ isHttps, key }: { readonly isHttps: boolean; readonly key: KeyObject }): SessionCookies {
  const mac = (text: string) => createHmac('sha256', key).update(text).digest('base64url');
  const deviceToken = (email: string) => mac(`device ${email.toLowerCase()}`);
  const device = cookie('gateway_device', 'Strict', isHttps);
  return {
    ...cookie('gateway_session', 'Lax', isHttps),
    signIn: cookie('gateway_sign_in', 'Strict', isHttps),
    csrfToken: mac,
    hasCsrfToken: ({ headers }, mask) => isSame(headers['x-csrf-token'], mac(mask)),
    writeDevice: (request, email) => device.write(request, deviceToken(email), new Date(Date.now() + DEVICE_MS)),
    isKnownDevice: (request, email) => isSame(device.read(request), deviceToken(email)),
  };
}

function isSame(text: string | string[] | undefined, wanted: string): boolean {
  const [given, expected] = [Buffer.from(text?.toString() ?? ''), Buffer.from(wanted)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function cookie(name: string, sameSite: 'Lax' | 'Strict', isHttps: boolean): Cookie {
  // A proxy that ends TLS says so. A client that lies about it only makes its own cookie stricter.
  const isSecure = ({ headers }: IncomingMessage) => isHttps || headers['x-forwarded-proto'] === 'https';
  // Browsers take a cookie with this prefix only over HTTPS and for this host: https://www.rfc-editor.org/rfc/rfc6265bis
  const nameOf = (request: IncomingMessage) => (isSecure(request) ? `__Host-${name}` : name);
  return {
    read(request) {
      const start = `${nameOf(request)}=`;
      const pair = (request.headers.cookie ?? '').split('; ').find((it) => it.startsWith(start));
      return pair?.slice(start.length);
    },
    write(request, value = '', expiresAt = new Date(0)) {
      const secure = isSecure(request) ? '; Secure' : '';
      return `${nameOf(request)}=${value}; Path=/; HttpOnly; SameSite=${sameSite}${secure}; Expires=${expiresAt.toUTCString()}`;
    },
  };
}
