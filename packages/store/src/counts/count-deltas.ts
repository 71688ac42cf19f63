/*
 * The statement that finishes rows also counts them: it inserts one row of count_changes per project, which `applyCountDeltas` adds to the counts.
 * These fragments count only rows that the statement inserted or updated, so a repeated statement counts nothing twice.
 */

/** The insert of deltas. `rows` select (project, endpoint, source, type, status, http, n), as the fragments below do. */
export function insertCountDeltas(...rows: readonly string[]): string {
  return `insert into count_changes (project_id, endpoints, sources, event_types, statuses, http_statuses, changes)
    select project, array_agg(endpoint), array_agg(source), array_agg(type), array_agg(status), array_agg(http), array_agg(n)
    from (${rows.join(' union all ')}) c group by project`;
}

/** Finished events; `from` has their project_id, source_id and status. */
export function finishedEvents(from: string): string {
  return `select project_id as project, null::uuid as endpoint, source_id as source, null::text as type, status::text as status, null::smallint as http, count(*)::int as n
    from ${from} where status <> 'pending' group by project_id, source_id, status`;
}

/** Finished deliveries; `from` has their project_id, endpoint_id, source_id, event_type and status. */
export function finishedDeliveries(from: string): string {
  return deliveryDeltas(from, '');
}

/** Deliveries that are no longer finished; `from` has their former status. */
export function unfinishedDeliveries(from: string): string {
  return deliveryDeltas(from, '-');
}

function deliveryDeltas(from: string, sign: '' | '-'): string {
  return `select project_id as project, endpoint_id as endpoint, source_id as source, event_type as type, status::text as status, null::smallint as http, ${sign}count(*)::int as n
    from ${from} where status in ('success', 'failure', 'discarded') group by project_id, endpoint_id, source_id, event_type, status`;
}

/** Recorded attempts; `from` has their project_id, endpoint_id, error_class and http_status. */
export function madeAttempts(from: string): string {
  return `select project_id as project, endpoint_id as endpoint, null::uuid as source, null::text as type, case when error_class is null then 'success' else 'failure' end as status,
           coalesce(http_status, 0::smallint) as http, count(*)::int as n
    from ${from} group by project_id, endpoint_id, error_class is null, http_status`;
}
