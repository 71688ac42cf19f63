import { GatewayError, networkReason, tlsReason } from '@gateway/core/errors';
import type { NodemailerError } from 'nodemailer/lib/errors';

/** What the sentences name. */
interface MailPlace {
  readonly host: string;
  readonly port: number;
  readonly username: string | undefined;
  readonly from: string;
}

/**
 * An error of sending e-mails as one that names the server and the settings. The answer of an SMTP server is quoted, the password is not in it.
 */
export function explainMailError(error: unknown, { host, port, username, from }: MailPlace): GatewayError {
  const it = error as NodemailerError;
  const place = { host, port };
  const cause = { cause: error };
  const answer = (it.response ?? it.message).replace(/\s+/g, ' ').replace(/\.$/, '').slice(0, 300);
  const refused = (what: string, setting: string) => new GatewayError('smtp_refused', { ...place, what, setting, answer }, cause);
  const code = it.originalCode ?? it.code ?? '';
  if (it.code === 'EAUTH' || it.code === 'ENOAUTH' || it.responseCode === 530)
    return new GatewayError('smtp_login', { ...place, username, answer }, cause);
  if (it.code === 'EENVELOPE' && it.command === 'MAIL FROM')
    return refused(`the sender ${from}`, 'smtp.from (--smtp-from, GATEWAY_SMTP_FROM)');
  if (it.code === 'EENVELOPE' && it.command !== 'DATA')
    return refused('every recipient', 'the addresses of the users, and smtp.to (GATEWAY_SMTP_TO)');
  if (it.responseCode !== undefined && it.code !== 'ETLS') return refused('the e-mail', 'smtp.from (--smtp-from, GATEWAY_SMTP_FROM)');
  const tls = tlsFailure(it, code);
  if (tls !== undefined) return new GatewayError('smtp_tls', { ...place, reason: tls }, cause);
  const reason =
    it.timeoutType === 'GREETING_TIMEOUT'
      ? 'it accepts the connection and says nothing, as one does that waits for TLS'
      : (networkReason({ code, cause: it.cause }) ??
        (it.code === 'ETIMEDOUT' ? 'no answer in time' : it.code === 'EDNS' ? 'no such host' : answer));
  return new GatewayError('smtp_unreachable', { ...place, reason }, cause);
}

/** Why TLS failed; undefined when it was something else. */
function tlsFailure({ code, message, response }: NodemailerError, original: string): string | undefined {
  if (original === 'ERR_SSL_WRONG_VERSION_NUMBER' || original === 'ERR_SSL_PACKET_LENGTH_TOO_LONG')
    return 'it does not speak TLS from the first byte';
  const known = tlsReason({ code: original, message });
  if (code !== 'ETLS' && known === undefined && !original.startsWith('CERT_')) return undefined;
  const text = message.replace(/^Error (initiating TLS - |upgrading connection with )/, '');
  return (response ?? known ?? text).replace(/\s+/g, ' ').slice(0, 300);
}
