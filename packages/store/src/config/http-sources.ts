import type { Pool } from 'pg';

/** Verification of requests: `type` and its settings, with sealed secrets. */
export interface VerifierRecord extends Readonly<Record<string, unknown>> {
  readonly type: string;
}

export interface HttpSettings {
  readonly verifier: VerifierRecord;
  /** The default event type. */
  readonly event_type: string | null;
  /** Location of the event type: `header.X-Topic`, `body.type`, `query.type`. */
  readonly event_type_location: string | null;
  /** Locations of the parts of the idempotency key. */
  readonly idempotency_keys: readonly string[];
  readonly forward_headers: readonly string[];
  readonly custom_response: { readonly body: string; readonly content_type: string } | null;
}

export interface HttpSource {
  readonly project_id: string;
  readonly id: string;
  readonly http: HttpSettings;
  readonly body_function: string | null;
  readonly is_disabled: boolean;
  readonly keep_messages: boolean;
  readonly paused_at: Date | null;
  readonly resumes_at: Date | null;
}

/**
 * Returns the HTTP source with this id in its URL, unless deleted. Reads a unique index. No lock.
 */
export async function findHttpSource(pool: Pool, maskId: string): Promise<HttpSource | undefined> {
  const { rows } = await pool.query<HttpSource>({
    name: 'find-http-source',
    text: `select s.project_id, s.id, s.http, s.body_function, s.is_disabled, s.keep_messages, s.paused_at, s.resumes_at
           from sources s join projects p on p.id = s.project_id and p.deleted_at is null where s.mask_id = $1 and s.deleted_at is null`,
    values: [maskId],
  });
  return rows[0];
}
