import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { PluginError, type PushAnswer, type PushRequest } from '@gateway/plugin';
import type { Verifier } from './connection.js';
import { queryOf } from './location.js';
import { isSame, secretOf } from './secrets.js';

/** A repeated query parameter is ignored. */
interface Asked {
  readonly query: (name: string) => string | undefined;
  readonly headers: IncomingHttpHeaders;
  /** Undefined if the body is not JSON. */
  readonly json: () => unknown;
  /** HMAC-SHA256 with the verifier's secret. */
  readonly mac: (text: string, encoding: 'hex' | 'base64') => string;
}

/** A provider checks that the owner of a URL wants its webhooks. */
interface Handshake {
  readonly method: 'GET' | 'POST';
  /** This query parameter has the source's token. */
  readonly tokenIn?: string;
  readonly isTokenOptional?: boolean;
  /**
   * The response is a MAC made with the verifier's secret. Only a single word is signed, so that no
   * response can serve as a webhook signature.
   */
  readonly needsSecret?: boolean;
  /** Text or a JSON object, or undefined if this is not a handshake. */
  readonly answer: (asked: Asked) => string | Readonly<Record<string, unknown>> | undefined;
}

const TEXT_MAX = 2_000;
const WORD = /^[\w.~+/=-]{1,200}$/;

/**
 * https://developers.facebook.com/docs/graph-api/webhooks/getting-started
 * https://www.w3.org/TR/websub/#hub-verifies-intent Requests to unsubscribe get no challenge,
 * because third parties must not end a subscription.
 */
const hubChallenge = ({ query }: Asked) =>
  query('hub.mode') === 'subscribe' ? query('hub.challenge') : undefined;

export const HANDSHAKES: Readonly<Record<string, Handshake>> = {
  hub_challenge: { method: 'GET', tokenIn: 'hub.verify_token', answer: hubChallenge },
  websub: {
    method: 'GET',
    tokenIn: 'hub.verify_token',
    isTokenOptional: true,
    answer: hubChallenge,
  },
  // https://docs.slack.dev/reference/events/url_verification
  slack: {
    method: 'POST',
    answer: ({ json }) => isType(json(), 'type', 'url_verification', (it) => it['challenge']),
  },
  // https://developer.monday.com/api-reference/reference/webhooks
  monday: {
    method: 'POST',
    answer: ({ json }) => {
      const body = json();
      const isAlone =
        isObject(body) && Object.keys(body).length === 1 && typeof body['challenge'] === 'string';
      return isAlone ? { challenge: body['challenge'] } : undefined;
    },
  },
  // https://learn.microsoft.com/graph/change-notifications-delivery-webhooks
  microsoft_graph: { method: 'POST', answer: ({ query }) => query('validationToken') },
  // https://learn.microsoft.com/azure/event-grid/end-point-validation-event-grid-events-schema
  event_grid: {
    method: 'POST',
    answer: ({ json }) => {
      const body = json();
      const first: unknown = Array.isArray(body) && body.length === 1 ? body[0] : undefined;
      const code = isType(
        first,
        'eventType',
        'Microsoft.EventGrid.SubscriptionValidationEvent',
        (it) => memberOf(it['data'], 'validationCode'),
      );
      return code === undefined ? undefined : { validationResponse: code };
    },
  },
  // https://www.dropbox.com/developers/reference/webhooks
  dropbox: { method: 'GET', answer: ({ query }) => query('challenge') },
  // https://developer.okta.com/docs/concepts/event-hooks/#one-time-verification-request
  okta: {
    method: 'GET',
    answer: ({ headers }) => {
      const challenge = headers['x-okta-verification-challenge'];
      return typeof challenge === 'string' ? { verification: challenge } : undefined;
    },
  },
  // https://developers.zoom.us/docs/api/webhooks/#validate-your-webhook-endpoint
  zoom: {
    method: 'POST',
    needsSecret: true,
    answer: ({ json, mac }) => {
      const plainToken = isType(json(), 'event', 'endpoint.url_validation', (it) =>
        memberOf(it['payload'], 'plainToken'),
      );
      return plainToken !== undefined && WORD.test(plainToken)
        ? { plainToken, encryptedToken: mac(plainToken, 'hex') }
        : undefined;
    },
  },
  // Challenge-response check: https://docs.x.com/x-api/webhooks/quickstart
  x: {
    method: 'GET',
    needsSecret: true,
    answer: ({ query, mac }) => {
      const token = query('crc_token');
      return token !== undefined && WORD.test(token)
        ? { response_token: `sha256=${mac(token, 'base64')}` }
        : undefined;
    },
  },
  // Trello, Intercom, Mailchimp and others only check that the URL exists.
  reachable: { method: 'GET', answer: () => 'ok' },
};

function isType(
  body: unknown,
  member: string,
  type: string,
  value: (body: Record<string, unknown>) => unknown,
): string | undefined {
  const found = isObject(body) && body[member] === type ? value(body) : undefined;
  return typeof found === 'string' ? found : undefined;
}

function memberOf(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * A handshake creates no event. Undefined for other requests.
 * @throws PluginError for a wrong token
 */
export function handshakeAnswer(
  verifier: Verifier,
  { method: given, headers, url, body: bytes }: Omit<PushRequest, 'headersDistinct'>,
): PushAnswer | undefined {
  const { type, token } = verifier.handshake ?? {};
  const handshake = type === undefined ? undefined : HANDSHAKES[type];
  const method = given === 'HEAD' ? 'GET' : given;
  if (handshake?.method !== method) return undefined;
  const parameters = queryOf(url);
  const query = (name: string) => {
    const [value, ...others] = parameters.getAll(name);
    return value !== '' && others.length === 0 ? value : undefined;
  };
  const answer = handshake.answer({
    query,
    headers,
    json: () => parsed(bytes),
    mac: (text, encoding) => createHmac('sha256', secretOf(verifier)).update(text).digest(encoding),
  });
  const body = typeof answer === 'object' ? JSON.stringify(answer) : answer;
  if (body === undefined || body.length > TEXT_MAX) return undefined;
  const { tokenIn } = handshake;
  if (
    tokenIn !== undefined &&
    token !== undefined &&
    !isSame(Buffer.from(query(tokenIn) ?? ''), Buffer.from(token))
  )
    throw new PluginError(`its ${tokenIn} does not match the token of the source`, {
      status: 401,
      fix: 'Give the provider the token of the source.',
    });
  return { contentType: typeof answer === 'object' ? 'application/json' : 'text/plain', body };
}

const BODY_MAX = 10_000;

function parsed(body: Uint8Array): unknown {
  if (body.byteLength > BODY_MAX) return undefined;
  try {
    return JSON.parse(Buffer.from(body).toString());
  } catch {
    return undefined;
  }
}
