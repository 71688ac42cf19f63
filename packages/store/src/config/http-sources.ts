import type { Pool } from 'pg';

/** How requests to an HTTP source prove who sends them: `type` and the settings of that type, secrets sealed. */
export interface VerifierRecord extends Readonly<Record<string, unknown>> {
  readonly type: string;
}

/** What a source of the type `http` has in place of a broker. */
export interface HttpSettings {
  readonly verifier: VerifierRecord;
  /** Event type of requests that say none. */
  readonly event_type: string | null;
  /** Where a request has its event type: `header.X-Topic`, `body.type`, `query.type`. */
  readonly event_type_location: string | null;
  /** Where a request has what makes up its idempotency key, as above. */
  readonly idempotency_keys: readonly string[];
  /** Headers that travel with the event. */
  readonly forward_headers: readonly string[];
  /** The answer to a request that was accepted. */
  readonly custom_response: { readonly body: string; readonly content_type: string } | null;
}

/** A source of the type `http` whose project is not deleted, as requests need it. */
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

/** Returns the HTTP source with this id in its URL. By a unique index. No lock. */
export async function findHttpSource(pool: Pool, maskId: string): Promise<HttpSource | undefined> {
  const { rows } = await pool.query<HttpSource>({
    name: 'find-http-source',
    text: `select s.project_id, s.id, s.http, s.body_function, s.is_disabled, s.keep_messages, s.paused_at, s.resumes_at
           from sources s join projects p on p.id = s.project_id and p.deleted_at is null where s.mask_id = $1 and s.deleted_at is null`,
    values: [maskId],
  });
  return rows[0];
}
