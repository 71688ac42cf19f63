import { randomUUID } from 'node:crypto';
import {
  type Message,
  PluginError,
  type PushAnswer,
  type PushCheckContext,
  type PushContext,
  type PushHead,
  type PushRequest,
  type PushSourcePlugin,
} from '@gateway/plugin';
import { isHeaderValue } from '../events/headers.js';
import { GatewayError } from '../errors/errors.js';
import type { sourceGuard } from '../http/ssrf-guard.js';
import { isObject } from '../json/json-value.js';
import { withTimeout } from '../process/timing.js';
import { withDefaults } from './connection-fields.js';
import { inCore } from './guarded-source.js';
import type { InstalledPlugin } from './manifest.js';
import { kindOf, readableError, untilFault } from './plugin-faults.js';
import { takenMessage } from './taken-message.js';

/** For an answer to the plugin's own requests. */
const ANSWER_BYTES = 1024 * 1024;
const CALL_MS = 10_000;
const MESSAGES_MAX = 1_000;

type Plain = Record<string, unknown>;
type OfCore<Context> = Omit<Context, 'signal' | 'settings'>;

/** Returns only valid values. `check` returns the connection to store. */
export interface GuardedPush {
  check(connection: Plain, context: OfCore<PushCheckContext>): Promise<Plain>;
  open(request: PushRequest, connection: Plain): Promise<PushHead>;
  verify(request: PushRequest, connection: Plain): Promise<string | undefined>;
  receive(
    request: PushRequest,
    connection: Plain,
    context: OfCore<PushContext>,
  ): Promise<PushedMessages>;
}

interface PushedMessages {
  /** With a name and the time of their arrival. */
  readonly messages: readonly Message[];
  readonly answer: PushAnswer | undefined;
}

export function pushFailed(name: string, reason: string, cause?: unknown): GatewayError {
  return new GatewayError('push_failed', { name, reason, retryAfterSeconds: 10 }, { cause });
}

/**
 * The plugin gets connections with defaults and reaches only allowed networks. `check` rejects with
 * the plugin's error, the other calls with `signature_invalid` or `request_refused` if the plugin
 * refuses the request, and with `push_failed`, which names the plugin, if it fails.
 *
 * @param options `failed` logs why a call failed
 */
export function guardedPush(
  plugin: PushSourcePlugin,
  { name, package: from, connectionSchema: schema = {} }: InstalledPlugin,
  {
    guard,
    settings,
    failed,
  }: {
    readonly guard: ReturnType<typeof sourceGuard>;
    readonly settings: Readonly<Plain>;
    readonly failed: (error: unknown) => void;
  },
): GuardedPush {
  const checked = (connection: Plain) => ({ ...withDefaults(connection, schema) });
  const inTime = (call: string, work: (signal: AbortSignal) => unknown): Promise<unknown> => {
    const ended = new AbortController();
    const working = guard(ANSWER_BYTES, () => untilFault(() => work(ended.signal)));
    return withTimeout(working, CALL_MS, `its ${call} did not end within ${CALL_MS / 1000} s`)
      .catch((thrown: unknown) => {
        throw readableError(thrown);
      })
      .finally(() => ended.abort());
  };
  /** An error that the plugin did not mean for its users is only logged. */
  const refusal = (call: string, cause: Error & Partial<PluginError> & { code?: unknown }) => {
    const { fix, status, code } = cause;
    const reason = cause.message.replace(/\.$/, '');
    if (status === 401) return new GatewayError('signature_invalid', { reason }, { cause });
    if (status === 400)
      return new GatewayError('request_refused', { reason, fix: fix ?? '' }, { cause });
    failed(cause);
    const isMeant = fix !== undefined || code === 'ETIMEDOUT';
    return pushFailed(name, isMeant ? reason : `its ${call} threw an error`, cause);
  };
  /** @param take returns the end of the sentence "it returns …" if the value is invalid */
  const called = async <Taken extends object>(
    call: string,
    take: (given: unknown) => Taken | string,
    work: (signal: AbortSignal) => unknown,
  ): Promise<Taken> => {
    try {
      const taken = take(await inTime(call, work));
      if (typeof taken !== 'string') return taken;
      const fix = `Report it to the author of ${from}.`;
      throw new PluginError(`its ${call} returns ${taken}`, { fix });
    } catch (error) {
      throw refusal(call, readableError(error));
    }
  };
  return {
    async check(connection, context) {
      const given = await inTime('check', (signal) =>
        plugin.check(checked(connection), { ...context, settings, signal }),
      );
      return isObject(given) ? given : connection;
    },
    open: (request, connection) =>
      called('open', takenHead, () => plugin.open?.(request, checked(connection)) ?? {}),
    verify: async (request, connection) =>
      (await called('verify', takenReason, () => plugin.verify(request, checked(connection))))
        .reason,
    receive: (request, connection, context) =>
      called(
        'receive',
        (given) => takenMessages(given, request.method),
        (signal) =>
          plugin.receive(request, checked(connection), inCore({ ...context, settings, signal })),
      ),
  };
}

function takenHead(given: unknown): PushHead | string {
  if (!isObject(given)) return kindOf(given);
  const { credential, maxBytes } = given;
  if (typeof (credential ?? '') !== 'string') return `${kindOf(credential)} as credential`;
  if (maxBytes !== undefined && !Number.isSafeInteger(maxBytes))
    return `${kindOf(maxBytes)} as maxBytes`;
  return { credential: credential as string | null, maxBytes: maxBytes as number };
}

function takenReason(reason: unknown): { readonly reason: string | undefined } | string {
  if (reason === undefined || (typeof reason === 'string' && reason !== '')) return { reason };
  return `${kindOf(reason)} instead of undefined or a reason`;
}

function takenMessages(given: unknown, method: PushRequest['method']): PushedMessages | string {
  if (!isObject(given)) return kindOf(given);
  const { messages = [], answer } = given;
  if (!Array.isArray(messages)) return `${kindOf(messages)} as messages`;
  if (messages.length > (method === 'POST' ? MESSAGES_MAX : 0))
    return `${messages.length} messages of a request with ${method}`;
  if (method === 'POST' && messages.length === 0 && answer === undefined)
    return 'neither messages nor an answer';
  const problem = answer === undefined ? undefined : answerProblem(answer);
  if (problem !== undefined) return problem;
  const timestamp = Date.now();
  const taken = messages.map((message: unknown) =>
    isObject(message)
      ? takenMessage({ ...message, coordinates: `http/${randomUUID()}`, timestamp })
      : `${kindOf(message)} as message`,
  );
  return (
    taken.find((it) => typeof it === 'string') ?? {
      messages: taken as Message[],
      answer: answer as PushAnswer | undefined,
    }
  );
}

function answerProblem(given: unknown): string | undefined {
  if (!isObject(given)) return `${kindOf(given)} as answer`;
  const { status = 200, contentType, body, headers = {} } = given;
  // Others could be pages of this host, with scripts.
  if (contentType !== 'application/json' && contentType !== 'text/plain')
    return 'an answer whose contentType is neither application/json nor text/plain';
  if (typeof body !== 'string') return `an answer whose body is ${kindOf(body)}, not a text`;
  const isHandshake = ([name, value]: [string, unknown]) =>
    /^webhook-[\w-]+$/i.test(name) && typeof value === 'string' && isHeaderValue(value);
  if (!isObject(headers) || !Object.entries(headers).every(isHandshake))
    return 'an answer with a header whose name does not begin with webhook-';
  const isStatus = Number.isInteger(status) && Number(status) >= 200 && Number(status) < 600;
  return isStatus ? undefined : 'an answer whose status is not from 200 to 599';
}
