import { rootCertificates } from 'node:tls';
import type { Config } from '@gateway/core/config';
import { GatewayError, nearest } from '@gateway/core/errors';
import { readCertificates } from '@gateway/core/http';
import type { SMTPTransportOptions } from 'nodemailer/lib/smtp-transport';
import wellKnown from 'nodemailer/lib/well-known';
import { services } from 'nodemailer/lib/well-known/services.js';

/** The SMTP server of the settings, resolved. */
export interface MailServer {
  readonly host: string;
  readonly port: number;
  readonly options: SMTPTransportOptions;
}

const SUBMISSION_PORT = 587;
const SMTPS_PORT = 465;

/**
 * Resolves the SMTP server: smtp.provider gives host, port and TLS; smtp.url, smtp.port and smtp.ssl override them.
 *
 * @throws GatewayError `smtp_setting`, `tls_file`
 */
export function mailServer(smtp: Config['smtp']): MailServer {
  const provider = smtp.provider === undefined ? {} : providerNamed(smtp.provider);
  const url: ReturnType<typeof parseUrl> = smtp.url === undefined ? {} : parseUrl(smtp.url);
  const host = url.host ?? provider.host ?? 'localhost';
  const known = url.host === undefined ? provider : {};
  // TLS from the first byte, not by STARTTLS.
  const secure = smtp.ssl || (url.secure ?? known.secure ?? false);
  const knownPort = known.port === undefined || (smtp.ssl && !known.secure) ? undefined : Number(known.port);
  const port = smtp.port ?? url.port ?? knownPort ?? (secure ? SMTPS_PORT : SUBMISSION_PORT);
  const { requireTLS, ignoreTLS, authMethod } = known;
  const authority = { path: smtp.ca_file ?? '', setting: 'smtp.ca_file', flag: 'GATEWAY_SMTP_CA_FILE' };
  return {
    host,
    port,
    options: {
      host,
      port,
      secure,
      ...(requireTLS ? { requireTLS } : {}),
      ...(ignoreTLS ? { ignoreTLS } : {}),
      ...(authMethod ? { authMethod } : {}),
      ...(smtp.username === undefined ? {} : { auth: { user: smtp.username, pass: smtp.password ?? '' } }),
      ...(smtp.ca_file === undefined ? {} : { tls: { ca: [...rootCertificates, ...readCertificates(authority)] } }),
    },
  };
}

function providerNamed(name: string): SMTPTransportOptions {
  const found = wellKnown(name);
  if (found) return found;
  const names = Object.keys(services).sort((a, b) => a.localeCompare(b));
  const near = nearest(name, [...names, ...Object.values(services).flatMap(({ aliases = [] }) => aliases)]);
  throw new GatewayError('smtp_setting', {
    sentence: `smtp.provider names ${JSON.stringify(name)}, which is not a known provider${near === undefined ? '' : `; did you mean ${near}?`}`,
    fix: `give the server with smtp.url (--smtp-url, GATEWAY_SMTP_URL), or with --smtp-provider or GATEWAY_SMTP_PROVIDER one of: ${names.join(', ')}`,
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
  if (!URL.canParse(whole) || new URL(whole).hostname === '') throw invalid('is neither a host nor a URL');
  const { hostname, port, username, password, pathname, search, hash } = new URL(whole);
  if (username || password) throw invalid('holds a login, which belongs in smtp.username and smtp.password');
  if (!/^\/?$/.test(pathname) || search || hash) throw invalid('has more than a host and a port');
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    ...(port === '' ? {} : { port: Number(port) }),
    ...(scheme === undefined ? {} : { secure: scheme === 'smtps' }),
  };
}
