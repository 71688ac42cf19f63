import type { DeliveryAttempt } from '@gateway/client';
import { milliseconds } from '../format/time.js';

/** The words for the owner of an endpoint about a failed attempt. */
export interface FailureWords {
  /** A few words, for badges and rows. */
  readonly label: string;
  readonly sentence: string;
  /** The owner's way to fix it. */
  readonly remedy: string;
}

export type FailedAttempt = Pick<
  DeliveryAttempt,
  'error_class' | 'http_status' | 'error' | 'duration_ms' | 'url'
>;

const READ_ANSWER = 'The response of your server may say why.';
const READ_LOG = 'Look for the error in the log of your server.';
const LET_IN =
  'Check the authentication of this endpoint, and that your server verifies signatures with the current secret.';
const CHECK_APPLICATION =
  'A proxy in front of your application gave this answer. Check that the application runs.';
const MOVED = 'We do not follow redirects: change the URL of this endpoint to where it leads.';

/** The names of HTTP statuses, and what the owner can do if that is more than to read the answer. */
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

/**
 * The words for each class of error. Texts of the API are for operators: of them, only reasons about
 * the owner's own server are shown.
 */
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
    words: ({ url, error }) => ({
      sentence: error?.includes('nothing listens')
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
    words: ({ url, error }) => {
      const reason = /: ((?:its|it|no common) .+)\.$/.exec(error ?? '')?.[1];
      return {
        sentence: `We could not open a secure connection to your server${reason ? `: ${reason}` : ''}.`,
        remedy: reason?.includes('client certificate')
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

/** The start of errors of the token server, which have the class of its failure. */
const NO_TOKEN = /^No access token from ([^:\s]+(?::\d+)?)/;

/** Returns what the owner of the endpoint reads about a failed attempt. */
export function failureWords(attempt: FailedAttempt): FailureWords {
  const { error_class: kind, http_status: status, error } = attempt;
  const tokenServer = NO_TOKEN.exec(error ?? '')?.[1];
  if (tokenServer) {
    return {
      label: 'no access token',
      sentence: `We got no access token from ${tokenServer}, so we did not send the message.`,
      remedy: 'Check the token URL, client id, client secret and scope of this endpoint.',
    };
  }
  const { words } = FAILURES[kind ?? ''] ?? FAILURES['status']!;
  return { label: failureLabel(kind, status), ...words(attempt) };
}

/** Returns the status or error of a failed attempt in a few words. */
export function failureLabel(kind: string | null, status: number | null): string {
  return status === null ? (FAILURES[kind ?? '']?.label ?? 'no answer') : String(status);
}

function statusWords({ http_status: status, error }: FailedAttempt): Omit<FailureWords, 'label'> {
  if (status === null)
    return { sentence: 'Your server did not accept the message.', remedy: READ_LOG };
  const [name, remedy = status >= 500 ? READ_LOG : READ_ANSWER] = STATUSES[status] ?? [];
  return {
    sentence: `Your server answered ${[status, name].filter(Boolean).join(' ')}.`,
    remedy: error?.includes('begin with https://')
      ? 'It speaks TLS: begin the URL of this endpoint with https://.'
      : remedy,
  };
}

function hostOf(url: string, part: 'host' | 'hostname' = 'host'): string {
  return URL.canParse(url) ? new URL(url)[part] : url;
}
