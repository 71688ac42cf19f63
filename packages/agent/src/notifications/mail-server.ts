import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import type { Config } from '@gateway/core/config';
import { GatewayError, nearest } from '@gateway/core/errors';
import type { SMTPTransportOptions } from 'nodemailer/lib/smtp-transport';
import wellKnown from 'nodemailer/lib/well-known';
import { services } from 'nodemailer/lib/well-known/services.js';

/** The SMTP server of the settings, resolved. */
export interface MailServer {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte. */
  readonly secure: boolean;
  readonly options: SMTPTransportOptions;
}

type Smtp = Config['smtp'];

const SUBMISSION_PORT = 587;
const SMTPS_PORT = 465;

/**
 * Where and how the settings say that e-mails are to be sent: smtp.provider gives host, port and TLS, and smtp.url, smtp.port and smtp.ssl say otherwise.
 *
 * @throws GatewayError `smtp_setting` when one of them is wrong
 */
export function mailServer(smtp: Smtp): MailServer {
  const provider = smtp.provider === undefined ? {} : providerNamed(smtp.provider);
  const url = smtp.url === undefined ? {} : urlOf(smtp.url);
  const host = url.host ?? provider.host ?? 'localhost';
  const known = url.host === undefined ? provider : {};
  const secure = smtp.ssl || url.secure === true || (url.secure === undefined && known.secure === true);
  const knownPort = known.port === undefined || (smtp.ssl && !known.secure) ? undefined : Number(known.port);
  const port = smtp.port ?? url.port ?? knownPort ?? (secure ? SMTPS_PORT : SUBMISSION_PORT);
  const { requireTLS, ignoreTLS, authMethod } = known;
  return {
    host,
    port,
    secure,
    options: {
      host,
      port,
      secure,
      ...(requireTLS ? { requireTLS } : {}),
      ...(ignoreTLS ? { ignoreTLS } : {}),
      ...(authMethod ? { authMethod } : {}),
      ...(smtp.username === undefined ? {} : { auth: { user: smtp.username, pass: smtp.password ?? '' } }),
      ...(smtp.ca_file === undefined ? {} : { tls: { ca: [...rootCertificates, readAuthority(smtp.ca_file)] } }),
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

function urlOf(text: string): { host?: string; port?: number; secure?: boolean } {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase();
  const wrong = (sentence: string) =>
    new GatewayError('smtp_setting', {
      sentence: `smtp.url ${sentence}`,
      fix: 'set smtp.url (--smtp-url, GATEWAY_SMTP_URL) to a host, or to smtp://<host>:<port> or smtps://<host>:<port>',
    });
  if (scheme !== undefined && scheme !== 'smtp' && scheme !== 'smtps') throw wrong(`has the scheme ${scheme}, which is not smtp or smtps`);
  let url: URL;
  try {
    // With a scheme that URL knows, so that it looks at host and port.
    url = new URL(`http://${scheme === undefined ? text : text.slice(scheme.length + 3)}`);
  } catch {
    throw wrong('is neither a host nor a URL');
  }
  if (url.username || url.password) throw wrong('holds a login, which belongs in smtp.username and smtp.password');
  if (url.pathname !== '/' || url.search || url.hash) throw wrong('has more than a host and a port');
  // URL leaves its own default port out.
  const port = url.port === '' ? (/:80\/?$/.test(text) ? 80 : undefined) : Number(url.port);
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    ...(port === undefined ? {} : { port }),
    ...(scheme === 'smtps' ? { secure: true } : scheme === 'smtp' ? { secure: false } : {}),
  };
}

function readAuthority(path: string): string {
  let pem: string;
  try {
    pem = readFileSync(path, 'utf8');
  } catch (error) {
    throw new GatewayError(
      'smtp_setting',
      {
        sentence: `smtp.ca_file ${path} cannot be read: ${(error as Error).message}`,
        fix: 'name a readable PEM file with smtp.ca_file or GATEWAY_SMTP_CA_FILE',
      },
      { cause: error },
    );
  }
  if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem;
  throw new GatewayError('smtp_setting', {
    sentence: `smtp.ca_file ${path} holds no PEM certificate`,
    fix: 'name the file of the certificate authority with smtp.ca_file or GATEWAY_SMTP_CA_FILE: it begins with -----BEGIN CERTIFICATE-----',
  });
}
