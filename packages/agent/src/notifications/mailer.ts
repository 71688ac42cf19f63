import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import { createTransport } from 'nodemailer';
import { explainMailError } from './mail-errors.js';
import { mailServer } from './mail-server.js';

/** An e-mail in plain text. */
export interface Mail {
  /** Addresses that all who get it may see. */
  readonly to?: readonly string[];
  /** Addresses that the others may not see. */
  readonly bcc?: readonly string[];
  readonly subject: string;
  readonly text: string;
  /** Names the e-mail the same each time it is sent, so that mailboxes may tell a copy. */
  readonly id?: string;
}

/** Sends e-mails through the SMTP server of the settings, a connection for each. */
export interface Mailer {
  /** `<host>:<port>`. */
  readonly server: string;
  /** Connects, agrees on TLS, logs in, and leaves again. Throws GatewayError `smtp_unreachable`, `smtp_tls`, `smtp_login` or `smtp_refused`. */
  verify(): Promise<void>;
  /** Sends an e-mail; resolves with the addresses that the server refused while it took others. Throws as `verify` does. */
  send(mail: Mail): Promise<{ readonly refused: readonly string[] }>;
}

/** True when the settings say where e-mails are sent and from whom: then notifications are sent. */
export function mailsAreSent({ smtp }: Pick<Config, 'smtp'>): boolean {
  return (smtp.url !== undefined || smtp.provider !== undefined) && smtp.from !== undefined;
}

const TIMEOUT_MS = 10_000;
const SILENCE_MS = 30_000;

/**
 * What sends e-mails by the `smtp` settings. Asks nothing of the network.
 *
 * @throws GatewayError `smtp_setting` when one of them is wrong or missing
 */
export function createMailer({ smtp }: Pick<Config, 'smtp'>): Mailer {
  const { from } = smtp;
  if (from === undefined)
    throw new GatewayError('smtp_setting', {
      sentence: 'smtp.from is not set, so e-mails would come from nobody',
      fix: 'set it to an address that the SMTP server may send from, with smtp.from, --smtp-from or GATEWAY_SMTP_FROM',
    });
  if (smtp.url === undefined && smtp.provider === undefined)
    throw new GatewayError('smtp_setting', {
      sentence: 'smtp.url is not set, so there is no server to send e-mails through',
      fix: 'set it with smtp.url, --smtp-url or GATEWAY_SMTP_URL, or name a provider with smtp.provider, --smtp-provider or GATEWAY_SMTP_PROVIDER',
    });
  const { host, port, options } = mailServer(smtp);
  const transport = createTransport({
    ...options,
    connectionTimeout: TIMEOUT_MS,
    dnsTimeout: TIMEOUT_MS,
    greetingTimeout: TIMEOUT_MS,
    socketTimeout: SILENCE_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const explain = (error: unknown): never => {
    throw explainMailError(error, { host, port, username: smtp.username, from });
  };
  return {
    server: `${host}:${port}`,
    async verify() {
      await transport.verify().catch(explain);
    },
    async send({ to, bcc = [], subject, text, id }) {
      const sent = await transport
        .sendMail({
          from,
          ...(smtp.reply_to === undefined ? {} : { replyTo: smtp.reply_to }),
          // An e-mail needs a To: https://www.rfc-editor.org/rfc/rfc5322#section-3.6.3
          to: to ? [...to] : 'undisclosed-recipients:;',
          bcc: [...bcc],
          subject,
          text,
          ...(id === undefined ? {} : { messageId: `<${id}@${domainOf(from)}>` }),
          // https://www.rfc-editor.org/rfc/rfc3834#section-5: no answers of absence, please.
          headers: { 'Auto-Submitted': 'auto-generated' },
        })
        .catch(explain);
      return { refused: sent.rejected };
    },
  };
}

function domainOf(address: string): string {
  return /@([^\s@>]+)>?$/.exec(address)?.[1] ?? 'localhost';
}
