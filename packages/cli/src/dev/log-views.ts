import type { Api } from './api.js';

/** What the API shows of an event. */
export interface EventView {
  readonly uid: string;
  readonly event_type: string;
  readonly status: 'pending' | 'processed' | 'failed';
  readonly outcome: string | null;
}

export interface DeliveryView {
  readonly uid: string;
  readonly event_id: string;
  readonly endpoint_id: string;
  readonly status: 'scheduled' | 'processing' | 'retry' | 'success' | 'failure' | 'discarded';
  readonly attempts: number;
  readonly created_at: string;
  readonly next_attempt_at: string | null;
  readonly event_metadata: { readonly event_type: string | null };
  readonly endpoint_metadata: { readonly name: string | null; readonly url: string | null; readonly status: string | null };
}

export interface AttemptView {
  readonly number: number;
  readonly requested_at: string;
  readonly duration_ms: number;
  readonly http_status: number | null;
  readonly status: boolean;
  readonly error: string | null;
  readonly response_body: string | null;
}

export interface QuarantinedView {
  readonly uid: string;
  readonly code: string;
  readonly reason: string;
}

interface Page<Row> {
  readonly content: readonly Row[];
}

/** The logs of a project, read over the API. */
export interface Logs {
  /** The newest by the time of their messages. */
  events(limit: number): Promise<readonly EventView[]>;
  deliveries(limit: number): Promise<readonly DeliveryView[]>;
  quarantined(limit: number): Promise<readonly QuarantinedView[]>;
  event(id: string): Promise<EventView>;
  deliveriesOf(eventId: string): Promise<readonly DeliveryView[]>;
  /** The newest first. */
  attemptsOf(deliveryId: string): Promise<readonly AttemptView[]>;
  quarantinedMessage(id: string): Promise<QuarantinedView>;
}

export function openLogs(api: Api, projectId: string): Logs {
  const at = `/projects/${projectId}`;
  const list = async <Row>(path: string) => (await api.get<Page<Row>>(at + path)).content;
  return {
    events: (limit) => list(`/events?perPage=${limit}`),
    deliveries: (limit) => list(`/eventdeliveries?perPage=${limit}`),
    quarantined: (limit) => list(`/quarantine?perPage=${limit}`),
    event: (id) => api.get(`${at}/events/${id}`),
    deliveriesOf: (eventId) => list(`/eventdeliveries?eventId=${eventId}`),
    attemptsOf: (deliveryId) => list(`/eventdeliveries/${deliveryId}/deliveryattempts`),
    quarantinedMessage: (id) => api.get(`${at}/quarantine/${id}`),
  };
}
