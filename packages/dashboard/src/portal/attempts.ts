import type { DeliveryAttempt } from '@gateway/client';
import { milliseconds } from '../format/time.js';

interface FailureWords {
  readonly label: string;
  readonly sentence: string;
  readonly remedy: string;
}

export type FailedAttempt = Pick<
  DeliveryAttempt,
  'error_class' | 'http_status' | 'error_code' | 'duration_ms' | 'url'
>;

const READ_ANSWER = 'The response of your server may say why.';
const READ_LOG = 'Look for the error in the log of your server.';
const LET_IN =
  'Check the authentication of this endpoint, and that your server verifies signatures with the current secret.';
const CHECK_APPLICATION =
  'A proxy in front of your application gave this answer. Check that the application runs.';
const MOVED = 'We do not follow redirects: change the URL of this endpoint to where it leads.';

/** The remedy is given if it is more than to read the answer. */
const STATUSES: Readonly<Record<number, readonly [name: string, remedy?: string]>> = {
  301: ['Moved Permanently', MOVED],
  302: ['Found', MOVED],
  303: ['See Other', MOVED],
  307: ['Temporary Redirect', MOVED],
  308: ['Permanent Redirect', MOVED],
  400: ['Bad Request'],
  401: ['Unauthorized', LET_IN],
  403: ['Forbidden', LET_IN],
  404: ['Not Found', 'Check the path in the URL of this endpoint.'],
  405: ['Method Not Allowed', 'Let your server accept POST requests at this URL.'],
  408: ['Request Timeout', READ_LOG],
  409: ['Conflict'],
  410: [
    'Gone',
    'This answer tells us to stop, so we deactivated the endpoint. Activate it to receive messages again.',
  ],
  413: ['Content Too Large', 'Let your server accept larger requests.'],
  415: ['Unsupported Media Type', 'Let your server accept JSON.'],
  422: ['Unprocessable Content'],
  429: ['Too Many Requests', 'We slow down, and wait for as long as its Retry-After header says.'],
  500: ['Internal Server Error', READ_LOG],
  501: ['Not Implemented', 'Let your server accept POST requests at this URL.'],
  502: ['Bad Gateway', CHECK_APPLICATION],
  503: ['Service Unavailable', 'Check that your server runs, and is not overloaded.'],
  504: ['Gateway Timeout', CHECK_APPLICATION],
};

const TLS: Readonly<Partial<Record<NonNullable<FailedAttempt['error_code']>, string>>> = {
  certificate_expired: 'its certificate has expired',
  certificate_not_yet_valid: 'its certificate is not valid yet',
  certificate_incomplete:
    'its certificate is signed by an unknown authority, or it does not send the intermediate certificate',
  certificate_untrusted: 'its certificate is signed by an unknown authority',
  certificate_self_signed: 'its certificate is self-signed',
  certificate_other_host: 'its certificate is for another host',
  no_tls: 'it does not speak TLS there',
  client_certificate_required: 'it requires a client certificate',
  client_certificate_rejected: 'it rejected the client certificate',
  no_http_1: 'it does not offer HTTP/1.1',
  no_common_protocol: 'we have no protocol version or cipher in common',
};

const FAILURES: Readonly<
  Record<
    string,
    { readonly label: string; words(attempt: FailedAttempt): Omit<FailureWords, 'label'> }
  >
> = {
  dns: {
    label: 'host not found',
    words: ({ url }) => ({
      sentence: `We could not look up the host name ${hostOf(url, 'hostname')}.`,
      remedy: 'Check its spelling in the URL of this endpoint, and its DNS records.',
    }),
  },
  connect: {
    label: 'no connection',
    words: ({ url, error_code: code }) => ({
      sentence:
        code === 'nothing_listens'
          ? `No server accepts connections at ${hostOf(url)}.`
          : `We could not connect to your server at ${hostOf(url)}.`,
      remedy:
        'Check that your server runs, that the URL has its host and port, and that its firewall lets us in.',
    }),
  },
  refused_address: {
    label: 'private address',
    words: ({ url }) => ({
      sentence: `${hostOf(url, 'hostname')} is in a private or reserved network, to which we do not send.`,
      remedy: 'Give this endpoint a URL that can be reached from the internet.',
    }),
  },
  proxy: {
    label: 'not reached',
    words: ({ url }) => ({
      sentence: `We could not reach your server at ${hostOf(url)}.`,
      remedy: 'Check that it can be reached from the internet. If it can, contact us.',
    }),
  },
  tls: {
    label: 'TLS error',
    words: ({ url, error_code: code }) => {
      const reason = code === null ? undefined : TLS[code];
      return {
        sentence: `We could not open a secure connection to your server${reason ? `: ${reason}` : ''}.`,
        remedy: code?.startsWith('client_certificate')
          ? 'Give this endpoint a client certificate that your server accepts.'
          : `Give your server a valid certificate for ${hostOf(url, 'hostname')}, from a public authority and with its intermediate certificates.`,
      };
    },
  },
  timeout: {
    label: 'timed out',
    words: ({ duration_ms: ms }) => ({
      sentence: `Your server did not answer within ${milliseconds(ms)}.`,
      remedy: 'Store the message, answer with a status of 2xx at once, and process it afterwards.',
    }),
  },
  reset: {
    label: 'connection closed',
    words: ({ url }) => ({
      sentence: 'Your server closed the connection without an answer.',
      remedy: url.startsWith('https:')
        ? `${READ_LOG} If it requires a client certificate, add one to this endpoint.`
        : `${READ_LOG} If it requires TLS, begin the URL of this endpoint with https://.`,
    }),
  },
  protocol: {
    label: 'not HTTP',
    words: () => ({
      sentence: 'We could not read the answer of your server: it is not valid HTTP.',
      remedy: 'Check that the URL of this endpoint leads to a web server.',
    }),
  },
  status: { label: 'rejected', words: statusWords },
  unsendable: {
    label: 'not sent',
    words: () => ({
      sentence: 'We could not make a request from the settings of this endpoint.',
      remedy: 'Check its URL, authentication and client certificate.',
    }),
  },
  function: {
    label: 'not sent',
    words: () => ({
      sentence: 'An error on our side kept us from preparing this message, so nothing was sent.',
      remedy: 'You need not do anything. If it lasts, contact us.',
    }),
  },
};

export function failureWords(attempt: FailedAttempt): FailureWords {
  const { error_class: kind, http_status: status, error_code: code } = attempt;
  // The class is that of the token server's failure.
  if (code === 'no_access_token') {
    return {
      label: 'no access token',
      sentence:
        'We got no access token from the token URL of this endpoint, so we did not send the message.',
      remedy: 'Check the token URL, client id, client secret and scope of this endpoint.',
    };
  }
  const { words } = FAILURES[kind ?? ''] ?? FAILURES['status']!;
  return { label: failureLabel(kind, status), ...words(attempt) };
}

export function failureLabel(kind: string | null, status: number | null): string {
  return status === null ? (FAILURES[kind ?? '']?.label ?? 'no answer') : String(status);
}

function statusWords({
  http_status: status,
  error_code: code,
}: FailedAttempt): Omit<FailureWords, 'label'> {
  if (status === null)
    return { sentence: 'Your server did not accept the message.', remedy: READ_LOG };
  const [name, remedy = status >= 500 ? READ_LOG : READ_ANSWER] = STATUSES[status] ?? [];
  return {
    sentence: `Your server answered ${[status, name].filter(Boolean).join(' ')}.`,
    remedy:
      code === 'tls_required'
        ? 'It speaks TLS: begin the URL of this endpoint with https://.'
        : remedy,
  };
}

function hostOf(url: string, part: 'host' | 'hostname' = 'host'): string {
  return URL.canParse(url) ? new URL(url)[part] : url;
}
