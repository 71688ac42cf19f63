const WAITING = `status in ('scheduled', 'retry') and next_attempt_at <= 'infinity'`;

/**
 * Defines `waiting` in a `with recursive`: each project with waiting deliveries and the earliest
 * due time, infinity if all are held. No lock. Each recursion step is one probe of
 * event_deliveries_due per partition: the cost depends on the number of these projects alone.
 * Condition and order exclude other indexes.
 */
export const WAITING_PROJECTS = `waiting as (
    (select project_id, next_attempt_at from event_deliveries where ${WAITING} order by project_id, next_attempt_at limit 1)
    union all
    select n.project_id, n.next_attempt_at from waiting w cross join lateral (
      select project_id, next_attempt_at from event_deliveries where ${WAITING} and project_id > w.project_id order by project_id, next_attempt_at limit 1) n
  )`;
