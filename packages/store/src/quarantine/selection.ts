import type { Pool } from 'pg';
import { idBound, progressAt } from '../pagination/log-page.js';

export interface QuarantineSpan {
  readonly from: Date;
  /** By default now. `from` and `to` are broker times. */
  readonly to?: Date | undefined;
  readonly after?: string | undefined;
  readonly sourceId?: string | undefined;
  readonly code?: string | undefined;
}

export interface QuarantineStep {
  readonly ids: readonly string[];
  /** Null after the last step. */
  readonly next: string | null;
  /** By broker time, from 0 to 1. */
  readonly progress: number;
}

const STEP_ROWS = 1_000;

/**
 * Oldest first. Each step reads a bounded number of rows, so it may have few ids or none. No lock.
 */
export async function* selectQuarantined(
  pool: Pool,
  projectId: string,
  { from, to = new Date(), after, sourceId, code }: QuarantineSpan,
  stepRows = STEP_ROWS,
): AsyncGenerator<QuarantineStep> {
  const [fromMs, toMs] = [Math.max(0, from.getTime()), Math.max(0, to.getTime())];
  let last = after;
  for (;;) {
    const { rows } = await pool.query<{ id: string; source_id: string; code: string }>({
      name: 'select-quarantined',
      text: `select e.id, e.source_id, e.code from quarantined_messages e
             where e.project_id = $1 and e.status = 'quarantined' and e.id >= $2 and e.id <= $3 and ($4::uuid is null or e.id > $4)
             order by e.id limit $5`,
      values: [projectId, idBound(fromMs, '0'), idBound(toMs, 'f'), last ?? null, stepRows],
    });
    const found = rows.filter(
      (row) =>
        (sourceId === undefined || row.source_id === sourceId) &&
        (code === undefined || row.code === code),
    );
    last = rows.at(-1)?.id;
    const isLast = rows.length < stepRows || last === undefined;
    const progress = isLast ? 1 : progressAt(last!, fromMs, toMs);
    yield { ids: found.map(({ id }) => id), next: isLast ? null : last!, progress };
    if (isLast) return;
  }
}
