import { compileFilter, type Filter } from '../events/filter.js';

export interface RoutedEndpoint {
  readonly id: string;
  readonly ownerId: string | null;
}

export interface RoutedSubscription {
  readonly id: string;
  readonly endpointId: string;
  readonly eventTypes: readonly string[];
  readonly body: Filter | null;
  readonly headers: Filter | null;
  readonly message?: Filter | null;
}

export interface RoutedProject<Endpoint extends RoutedEndpoint = RoutedEndpoint> {
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly endpointsOfOwner: ReadonlyMap<string, readonly Endpoint[]>;
  readonly subscriptions: readonly RoutedSubscription[];
  /** Filled on first use of an event type. */
  readonly subscriptionsOfType: Map<string, readonly RoutedSubscription[]>;
}

export interface StoredSubscription {
  readonly id: string;
  readonly endpoint_id: string;
  readonly event_types: readonly string[];
  readonly filter: {
    readonly body?: Readonly<Record<string, unknown>>;
    readonly headers?: Readonly<Record<string, unknown>>;
    readonly message?: Readonly<Record<string, unknown>>;
  } | null;
}

/**
 * Compiles filters and indexes endpoints.
 * @param onInvalid see `routedSubscription`
 */
export function routedProject<Endpoint extends RoutedEndpoint, Row extends StoredSubscription>(
  endpoints: readonly Endpoint[],
  rows: readonly Row[],
  onInvalid: (row: Row, error: unknown) => void,
): RoutedProject<Endpoint> {
  return routedOf(
    endpoints,
    rows.flatMap((row) => routedSubscription(row, onInvalid) ?? []),
  );
}

/** For filters that are already compiled. */
export function routedOf<Endpoint extends RoutedEndpoint>(
  endpoints: readonly Endpoint[],
  subscriptions: readonly RoutedSubscription[],
): RoutedProject<Endpoint> {
  const endpointsOfOwner = new Map<string, Endpoint[]>();
  for (const endpoint of endpoints) {
    if (endpoint.ownerId === null) continue;
    const owned = endpointsOfOwner.get(endpoint.ownerId);
    if (owned) owned.push(endpoint);
    else endpointsOfOwner.set(endpoint.ownerId, [endpoint]);
  }
  return {
    endpoints: new Map(endpoints.map((endpoint) => [endpoint.id, endpoint])),
    endpointsOfOwner,
    subscriptions,
    subscriptionsOfType: new Map(),
  };
}

/**
 * Undefined if a filter does not compile: matching nothing is safer than matching everything.
 * @param onInvalid called if a filter does not compile
 */
export function routedSubscription<Row extends StoredSubscription>(
  row: Row,
  onInvalid: (row: Row, error: unknown) => void,
): RoutedSubscription | undefined {
  const { body = {}, headers = {}, message = {} } = row.filter ?? {};
  const filterOf = (filter: Readonly<Record<string, unknown>>) =>
    Object.keys(filter).length > 0 ? compileFilter(filter) : null;
  try {
    return {
      id: row.id,
      endpointId: row.endpoint_id,
      eventTypes: row.event_types,
      body: filterOf(body),
      headers: filterOf(lowerNames(headers)),
      message: filterOf(message),
    };
  } catch (error) {
    onInvalid(row, error);
    return undefined;
  }
}

/** Events have lower-case header names. */
export function lowerNames(filter: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(filter).map(([name, operand]) => [
      name.toLowerCase(),
      Array.isArray(operand) && (name === '$or' || name === '$and')
        ? operand.map((one) => lowerNames(one as Record<string, unknown>))
        : operand,
    ]),
  );
}
