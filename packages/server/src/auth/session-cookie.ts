import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Scripts cannot read it. */
export interface Cookie {
  read(request: IncomingMessage): string | undefined;
  /** Deletes the cookie if `value` is omitted. */
  write(request: IncomingMessage, value?: string, expiresAt?: Date): string;
}

/**
 * The value is an API key. Writes must also send a token in a header, which pages of other origins
 * can neither read nor send (OWASP, Cross-Site Request Forgery Prevention Cheat Sheet:
 * https://cheatsheetseries.owasp.org).
 */
export interface SessionCookies extends Cookie {
  /** Stored while the user signs in at the OpenID Connect provider. */
  readonly signIn: Cookie;
  /** The `x-csrf-token` required for writes. */
  csrfToken(mask: string): string;
  hasCsrfToken(request: IncomingMessage, mask: string): boolean;
  /**
   * Identifies the browser on the account's later sign-ins. It proves an earlier sign-in with the
   * password, and grants no access.
   */
  writeDevice(request: IncomingMessage, email: string): string;
  isKnownDevice(request: IncomingMessage, email: string): boolean;
}

const DEVICE_MS = 365 * 86_400_000;

/** @param key signs the tokens; the same on every server */
export function sessionCookies({
  isHttps,
  key,
}: {
  readonly isHttps: boolean;
  readonly key: KeyObject;
}): SessionCookies {
  const mac = (text: string) => createHmac('sha256', key).update(text).digest('base64url');
  const deviceToken = (email: string) => mac(`device ${email.toLowerCase()}`);
  const device = cookie('gateway_device', 'Strict', isHttps);
  return {
    ...cookie('gateway_session', 'Lax', isHttps),
    signIn: cookie('gateway_sign_in', 'Strict', isHttps),
    csrfToken: mac,
    hasCsrfToken: ({ headers }, mask) => isSame(headers['x-csrf-token'], mac(mask)),
    writeDevice: (request, email) =>
      device.write(request, deviceToken(email), new Date(Date.now() + DEVICE_MS)),
    isKnownDevice: (request, email) => isSame(device.read(request), deviceToken(email)),
  };
}

function isSame(text: string | string[] | undefined, wanted: string): boolean {
  const [given, expected] = [Buffer.from(text?.toString() ?? ''), Buffer.from(wanted)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function cookie(name: string, sameSite: 'Lax' | 'Strict', isHttps: boolean): Cookie {
  // The header is set by a proxy that terminates TLS. A client that forges it only makes its own
  // cookie stricter.
  const isSecure = ({ headers }: IncomingMessage) =>
    isHttps || headers['x-forwarded-proto'] === 'https';
  // Browsers accept this prefix only over HTTPS and for this host:
  // https://www.rfc-editor.org/rfc/rfc6265bis
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
