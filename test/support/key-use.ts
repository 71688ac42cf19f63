import { setTimeout as sleep } from 'node:timers/promises';

/** A request that a credential is allowed to make. */
export interface KeyRequest {
  readonly what: string;
  readonly key: string;
  readonly method: string;
  readonly path: string;
  readonly body?: () => unknown;
}

export interface KeyUse {
  /** Responses that refuse a valid key or its permissions, one sentence each. */
  readonly refusals: readonly string[];
  /** Requests answered with 2xx, by port. */
  readonly accepted: ReadonlyMap<number, number>;
  stop(): Promise<void>;
}

/**
 * Repeats the requests at each of these servers. An unreachable or stopping server does not count
 * as a refusal.
 */
export function useKeys(
  requests: readonly KeyRequest[],
  ports: readonly number[],
  everyMs = 50,
): KeyUse {
  const refusals: string[] = [];
  const accepted = new Map<number, number>();
  let stopped = false;
  const ask = async (port: number, { what, key, method, path, body }: KeyRequest) => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body()) }),
      signal: AbortSignal.timeout(5_000),
    });
    const text = await response.text();
    if (response.ok) accepted.set(port, (accepted.get(port) ?? 0) + 1);
    else if ([401, 403, 404].includes(response.status))
      refusals.push(
        `${what} at ${new Date().toISOString()}: ${response.status} ${text.slice(0, 200)}`,
      );
  };
  const using = ports.map(async (port) => {
    while (!stopped)
      await Promise.all([
        sleep(everyMs),
        ...requests.map((request) => ask(port, request).catch(() => undefined)),
      ]);
  });
  return {
    refusals,
    accepted,
    stop: async () => {
      stopped = true;
      await Promise.all(using);
    },
  };
}
