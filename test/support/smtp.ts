import fs from 'node:fs';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { certificates, type Certificates } from './start/certificates.js';
import { tempFolder } from './start/keep.js';
import { until } from './until.js';

export interface ReceivedMail {
  /** The envelope sender. */
  readonly from: string;
  readonly to: readonly string[];
  readonly secure: boolean;
  /** The authenticated user, if any. */
  readonly user: string | undefined;
  /** Unfolded headers by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** A real SMTP server on 127.0.0.1 that records emails. */
export interface Smtp {
  readonly port: number;
  /** PEM file of the authority of its certificate, which is valid for localhost and 127.0.0.1. */
  readonly ca: string;
  readonly mails: readonly ReceivedMail[];
  received(count: number): Promise<readonly ReceivedMail[]>;
  close(): Promise<void>;
}

/** One certificate for all servers of a process: openssl is slow. */
let made: Certificates | undefined;

/**
 * Starts a server with STARTTLS by default.
 * @param options.login the required user and password; without them anonymous emails are accepted
 * @param options.refuses addresses refused as sender or recipient
 * @param options.recipient returns the code with which a recipient is refused, by the number of those
 *   accepted before it for the email and for the connection
 * @param options.starttls the code with which STARTTLS is refused
 * @param options.pair PEM files of a certificate and its key
 */
export async function smtp(
  options: {
    tls?: 'none' | 'starttls' | 'implicit';
    port?: number;
    login?: { user: string; password: string };
    refuses?: readonly string[];
    recipient?: (address: string, ofEmail: number, ofConnection: number) => number | undefined;
    starttls?: number;
    pair?: { key: string; certificate: string };
  } = {},
): Promise<Smtp> {
  const { tls = 'starttls', port = 0, login, refuses = [] } = options;
  const { ca } = (made ??= certificates(tempFolder('smtp')));
  const { key, certificate } = options.pair ?? made;
  const accepted = new Map<string, number>();
  const mails: ReceivedMail[] = [];
  const refuse = (address: string) =>
    refuses.includes(address)
      ? Object.assign(new Error(`${address} is not wanted`), { responseCode: 550 })
      : null;
  const disabled: string[] = [
    ...(tls === 'starttls' ? [] : ['STARTTLS']),
    ...(login ? [] : ['AUTH']),
  ];
  const handlers: SMTPServerOptions = {
    secure: tls === 'implicit',
    key: fs.readFileSync(key),
    cert: fs.readFileSync(certificate),
    disabledCommands: disabled,
    authOptional: !login,
    allowInsecureAuth: tls === 'none',
    onAuth: ({ username, password }, _session, done) =>
      username === login?.user && password === login?.password
        ? done(null, { user: username })
        : done(Object.assign(new Error('Invalid username or password'), { responseCode: 535 })),
    onMailFrom: ({ address }, _session, done) => done(refuse(address)),
    onRcptTo: ({ address }, { id, envelope }, done) => {
      const before = accepted.get(id) ?? 0;
      const responseCode = options.recipient?.(address, envelope.rcptTo.length, before);
      if (responseCode !== undefined)
        return done(Object.assign(new Error(`not ${address} now`), { responseCode }));
      accepted.set(id, before + 1);
      done(refuse(address));
    },
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          secure: session.secure,
          user: session.user,
          ...parse(Buffer.concat(chunks).toString()),
        });
        done();
      });
    },
  };
  if (options.starttls !== undefined)
    handlers.onConnect = (_session, done) => {
      for (const connection of server.connections)
        Object.assign(connection, {
          handler_STARTTLS(
            this: { send: (code: number, text: string) => void },
            _: unknown,
            end: () => void,
          ) {
            this.send(options.starttls!, 'TLS not available due to local problem');
            end();
          },
        });
      done();
    };
  const server = new SMTPServer(handlers);
  // A client that does not trust the certificate aborts the connection, as some tests intend.
  server.on('error', () => undefined);
  server.listen(port, '127.0.0.1');
  await once(server.server, 'listening');
  return {
    port: (server.server.address() as AddressInfo).port,
    ca,
    mails,
    received: (count) => until(`${count} emails`, () => mails.length >= count && mails),
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function parse(message: string): { headers: Record<string, string>; text: string } {
  const [head = '', ...body] = message.split('\r\n\r\n');
  const lines = head.replace(/\r\n[ \t]+/g, ' ').split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  );
  const raw = body.join('\r\n\r\n');
  const text = /quoted-printable/i.test(headers['content-transfer-encoding'] ?? '')
    ? quotedPrintable(raw)
    : raw;
  return { headers, text: text.replaceAll('\r\n', '\n') };
}

/** https://www.rfc-editor.org/rfc/rfc2045#section-6.7 */
function quotedPrintable(text: string): string {
  const bytes = text
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString();
}
