import { clip } from '@gateway/core/json';
import { rootCertificates } from 'node:tls';
import { domainToASCII } from 'node:url';
import type { Config } from '@gateway/core/config';
import { GatewayError, nearest, networkReason, tlsReason } from '@gateway/core/errors';
import { readCertificates } from '@gateway/core/http';
import { changingPassword } from '@gateway/core/process';
import { createTransport } from 'nodemailer';
import type { NodemailerError } from 'nodemailer/lib/errors';
import type { SMTPTransportOptions } from 'nodemailer/lib/smtp-transport';
import wellKnown from 'nodemailer/lib/well-known';
import { services } from 'nodemailer/lib/well-known/services.js';

export interface Mail {
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
  /** Shared by all copies of an email. Mailboxes detect duplicates by it. */
  readonly id?: string;
}

/** Rejects with `smtp_unreachable`, `smtp_tls`, `smtp_login` or `smtp_refused`. */
export type Mailer = ReturnType<typeof createMailer>;

/** Email notifications need a server and a sender. */
export function mailsAreSent({ smtp }: Pick<Config, 'smtp'>): boolean {
  return (smtp.url !== undefined || smtp.provider !== undefined) && smtp.from !== undefined;
}

const TIMEOUT_MS = 10_000;
const SILENCE_MS = 30_000;

/**
 * Does not connect to the server.
 *
 * @throws GatewayError `smtp_setting` if a setting is wrong or missing, or `tls_file` if
 *   `smtp.ca_file` cannot be used
 */
export function createMailer({ smtp }: Pick<Config, 'smtp'>) {
  const { from, username } = smtp;
  if (from === undefined)
    throw new GatewayError('smtp_setting', {
      sentence: 'smtp.from is not set, so emails have no sender',
      fix: 'set it to an address that the SMTP server may send from, with smtp.from, --smtp-from or GATEWAY_SMTP_FROM',
    });
  if (smtp.url === undefined && smtp.provider === undefined)
    throw new GatewayError('smtp_setting', {
      sentence: 'smtp.url is not set, so there is no server to send emails through',
      fix: 'set it with smtp.url, --smtp-url or GATEWAY_SMTP_URL, or name a provider with smtp.provider, --smtp-provider or GATEWAY_SMTP_PROVIDER',
    });
  const server = mailServer(smtp);
  const { host, port } = server;
  const password = changingPassword('smtp', smtp);
  const transportWith = (login: object) =>
    createTransport({
      ...server,
      ...login,
      connectionTimeout: TIMEOUT_MS,
      dnsTimeout: TIMEOUT_MS,
      greetingTimeout: TIMEOUT_MS,
      socketTimeout: SILENCE_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  const fixed = transportWith({});
  const transport = async () =>
    password === undefined || username === undefined
      ? fixed
      : transportWith({ auth: { user: username, pass: await password.read() } });
  const explain = (error: unknown): never => {
    throw explainMailError(error as NodemailerError, { host, port }, { username, from });
  };
  return {
    server: `${host}:${port}`,
    async verify() {
      await (await transport()).verify().catch(explain);
    },
    /**
     * Resolves with the addresses that the server refused, permanently or temporarily, the error of
     * the first, and how many it accepted. Rejects if the server refused something else.
     */
    async send({ to, subject, text, id }: Mail) {
      if (to.length === 0) return { accepted: 0, refused: [], deferred: [] };
      const mail = {
        from,
        ...(smtp.reply_to !== undefined && { replyTo: smtp.reply_to }),
        to: [...to],
        subject,
        text,
        ...(id !== undefined && {
          messageId: `<${id}@${/@([^\s@>]+)>?$/.exec(from)?.[1] ?? 'localhost'}>`,
        }),
        // Suppresses out-of-office replies: https://www.rfc-editor.org/rfc/rfc3834#section-5
        headers: { 'Auto-Submitted': 'auto-generated' },
      };
      const { rejectedErrors = [] } = await (
        await transport()
      )
        .sendMail(mail)
        .catch((error: NodemailerError) =>
          error.command === 'RCPT TO' && error.rejectedErrors ? error : explain(error),
        );
      const refusedWith = (isTemporary: boolean) => {
        const errors = rejectedErrors.filter(
          (it) => (it.responseCode ?? 500) < 500 === isTemporary,
        );
        const known = new Set(errors.map((it) => mailbox(it.recipient ?? '')));
        const addresses = to.filter((it) => known.has(mailbox(it)));
        return { addresses, errors };
      };
      const [refused, deferred] = [refusedWith(false), refusedWith(true)];
      const [first] = [...refused.errors, ...deferred.errors];
      return {
        accepted: to.length - refused.addresses.length - deferred.addresses.length,
        refused: refused.addresses,
        deferred: deferred.addresses,
        error: first && explainMailError(first, { host, port }, { username, from }),
      };
    },
  };
}

/** With the domain as in the SMTP dialogue. */
function mailbox(address: string): string {
  const at = address.lastIndexOf('@') + 1;
  return address.slice(0, at) + domainToASCII(address.slice(at));
}

/**
 * Names the server and the settings to correct. Quotes the server's response, which contains no
 * password.
 */
function explainMailError(
  error: NodemailerError,
  place: { host: string; port: number },
  { username, from }: { username: string | undefined; from: string },
): GatewayError {
  const { code, command, responseCode, response, message, timeoutType, recipient } = error;
  const cause = { cause: error };
  const oneLine = (text: string) => clip(text.replace(/\s+/g, ' ').replace(/\.$/, ''), 300);
  const answer = oneLine(response ?? message);
  const original = error.originalCode ?? code ?? '';
  if (responseCode !== undefined && /STARTTLS/i.test(answer))
    return new GatewayError('smtp_tls', { ...place, reason: answer, answer }, cause);
  if (code === 'EAUTH' || code === 'ENOAUTH' || responseCode === 530)
    return new GatewayError('smtp_login', { ...place, username, answer }, cause);
  const refused = (what: string, fix: string) =>
    new GatewayError('smtp_refused', { ...place, what, answer, fix }, cause);
  if (code === 'EENVELOPE' && command === 'MAIL FROM')
    return refused(
      `the sender ${from}`,
      'correct smtp.from (--smtp-from, GATEWAY_SMTP_FROM), or allow this sender on that server',
    );
  if (code === 'EENVELOPE' && command !== 'DATA')
    return refused(
      recipient === undefined ? 'the recipients' : `the recipient ${recipient}`,
      'correct the addresses of the users, or allow these recipients on that server',
    );
  if (responseCode !== undefined && code !== 'ETLS')
    return refused(
      command === 'CONN' ? 'the connection' : 'the email',
      'correct what the answer names; the log of that server may say more',
    );
  const tls = tlsReason({ code: original, message });
  if (tls !== undefined || code === 'ETLS' || original.startsWith('CERT_')) {
    const plain = message.replace(/^Error (initiating TLS - |upgrading connection with )/, '');
    return new GatewayError(
      'smtp_tls',
      { ...place, reason: oneLine(response ?? tls ?? plain), answer: response },
      cause,
    );
  }
  const reason =
    timeoutType === 'GREETING_TIMEOUT'
      ? 'it accepts the connection but sends no greeting, like a server that expects TLS from the first byte'
      : (networkReason({ code: original, cause: error.cause }) ??
        networkReason({ code: code === 'EDNS' ? 'ENOTFOUND' : code }) ??
        answer);
  return new GatewayError('smtp_unreachable', { ...place, reason }, cause);
}

const SUBMISSION_PORT = 587;
const SMTPS_PORT = 465;

/**
 * `smtp.provider` sets host, port and TLS; `smtp.url`, `smtp.port` and `smtp.ssl` override them.
 */
function mailServer(smtp: Config['smtp']) {
  const provider = smtp.provider === undefined ? {} : providerNamed(smtp.provider);
  const url: ReturnType<typeof parseUrl> = smtp.url === undefined ? {} : parseUrl(smtp.url);
  const host = url.host ?? provider.host ?? 'localhost';
  const known = url.host === undefined ? provider : {};
  // TLS from the first byte, as opposed to STARTTLS.
  const secure = smtp.ssl || (url.secure ?? known.secure ?? false);
  const knownPort =
    known.port === undefined || (smtp.ssl && !known.secure) ? undefined : Number(known.port);
  const port = smtp.port ?? url.port ?? knownPort ?? (secure ? SMTPS_PORT : SUBMISSION_PORT);
  const { authMethod } = known;
  const {
    requireTLS = smtp.starttls === 'required',
    ignoreTLS = smtp.starttls === 'off',
    opportunisticTLS = smtp.starttls === 'opportunistic',
  } = smtp.starttls === undefined ? known : {};
  const authority = {
    path: smtp.ca_file ?? '',
    setting: 'smtp.ca_file',
    flag: 'GATEWAY_SMTP_CA_FILE',
  };
  return {
    host,
    port,
    secure,
    requireTLS,
    ignoreTLS,
    opportunisticTLS,
    ...(authMethod && { authMethod }),
    ...(smtp.username !== undefined && {
      auth: { user: smtp.username, pass: smtp.password ?? '' },
    }),
    tls: {
      rejectUnauthorized: !smtp.insecure_skip_verify,
      ...(smtp.ca_file !== undefined && {
        ca: [...rootCertificates, ...readCertificates(authority)],
      }),
    },
  };
}

function providerNamed(name: string): SMTPTransportOptions {
  const found = wellKnown(name);
  if (found) return found;
  const names = Object.keys(services).sort((a, b) => a.localeCompare(b));
  const near = nearest(name, [
    ...names,
    ...Object.values(services).flatMap(({ aliases = [] }) => aliases),
  ]);
  throw new GatewayError('smtp_setting', {
    sentence: `smtp.provider names ${JSON.stringify(name)}, which is not a known provider${near === undefined ? '' : `; did you mean ${near}?`}`,
    fix: `set the server with smtp.url (--smtp-url, GATEWAY_SMTP_URL), or set --smtp-provider or GATEWAY_SMTP_PROVIDER to one of: ${names.join(', ')}`,
  });
}

function parseUrl(text: string): { host?: string; port?: number; secure?: boolean } {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase();
  const invalid = (sentence: string) =>
    new GatewayError('smtp_setting', {
      sentence: `smtp.url ${sentence}`,
      fix: 'set smtp.url (--smtp-url, GATEWAY_SMTP_URL) to a host, or to smtp://<host>:<port> or smtps://<host>:<port>',
    });
  if (scheme !== undefined && scheme !== 'smtp' && scheme !== 'smtps')
    throw invalid(`has the scheme ${scheme}, which is not smtp or smtps`);
  const whole = scheme === undefined ? `smtp://${text}` : text;
  if (!URL.canParse(whole) || new URL(whole).hostname === '')
    throw invalid('is neither a host nor a URL');
  const { hostname, port, pathname, search, hash } = new URL(whole);
  if (!/^\/?$/.test(pathname) || search || hash) throw invalid('has more than a host and a port');
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    ...(port === '' ? {} : { port: Number(port) }),
    ...(scheme === undefined ? {} : { secure: scheme === 'smtps' }),
  };
}
